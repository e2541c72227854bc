r"""Characters predicted line by line: every line is read from the beginning of the state.

.. math:: p(x_1, …, x_n) = \prod_t p(x_t \mid \text{line end}, x_1, …, x_{t-1})

The task ``chars`` reads running text, where a line that was cut short would run into the next. Here lines know nothing
of each other, so a partial line teaches what stands in it and no more. The model, its measures and what a text costs
are those of the task; a line's first character is predicted as what follows a line's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from unrolled.lab.data.aligned_sequences import Aligned
from unrolled.lab.data.bptt_windows import Window
from unrolled.lab.data.corpus import Stream
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.tasks.chars import CharacterModelling
from unrolled.lab.training.task import Loss, State

__all__ = ["EncodedLines", "LineByLine"]


@dataclass(frozen=True)
class EncodedLines(Aligned):
    """Lines in numbers."""

    @classmethod
    def encode(cls, lines: Sequence[Sequence[int]], before: int) -> EncodedLines:
        """Say of each place what is read and what follows it.

        Args:
            lines: token indices.
            before: the token that is read before a line's first.

        Returns:
            The lines.

        Raises:
            DataError: when there is no line, or one is empty.
        """
        return cls.from_rows([((before, *line[:-1]) if line else (), line) for line in lines])

    def select(self, which: Tensor) -> Window:
        """Lay some lines side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest line; behind a line's end nothing is predicted.
        """
        (tokens, targets), _ = self.gather(which, (PADDING, PADDING))
        return Window(tokens, targets)


class LineByLine(CharacterModelling):
    """Say which character of a line comes next, every line from a state of its own.

    Args:
        architecture: what the model is made of.
        vocabulary: the characters of the training text.
    """

    evaluation_batch = 64

    def encode(self, examples: Stream) -> EncodedLines:  # type: ignore[override]  # lines, not running text
        """Look up all characters."""
        return EncodedLines.encode([self.vocabulary.encode(line) for line in examples], self.line_end)

    def loss(self, model: nn.Module, batch: Window, state: State) -> Loss:
        """Compute the cross-entropy of the characters that came; the next batch begins anew."""
        cost = super().loss(model, batch, ())
        return Loss(cost.total, cost.count)
