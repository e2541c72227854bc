r"""Character modelling of independent lines: the state is reset at the beginning of every line.

.. math:: p(x_1, …, x_n) = \prod_t p(x_t \mid \text{line end}, x_1, …, x_{t-1})

The task ``chars`` reads running text, where a truncated line would run into the next one. Here a truncated line
teaches only the characters that it contains. Model and metrics are those of ``chars``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from unrolled.lab.data.batches.base import EncodedSequences
from unrolled.lab.data.batches.windows import WindowBatch
from unrolled.lab.data.corpus import Stream
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.tasks.chars import CharacterModelling
from unrolled.lab.training.task import HiddenState, Loss

__all__ = ["EncodedLines", "LineModelling"]


@dataclass(frozen=True)
class EncodedLines(EncodedSequences):
    """Lines as token indices."""

    @classmethod
    def encode(cls, lines: Sequence[Sequence[int]], before: int) -> EncodedLines:
        """Align inputs and targets; the token ``before`` is read before the first token of every line."""
        return cls.from_rows([((before, *line[:-1]) if line else (), line) for line in lines])

    def select(self, which: Tensor) -> WindowBatch:
        """Make a padded batch; targets at padding are ignored."""
        (tokens, targets), _ = self.gather(which, (PADDING, PADDING))
        return WindowBatch(tokens, targets)


class LineModelling(CharacterModelling):
    """Predict the next character of a line, every line from an empty state."""

    evaluation_batch = 64

    def encode(self, examples: Stream) -> EncodedLines:  # type: ignore[override]  # lines, not running text
        """Look up all characters."""
        return EncodedLines.encode([self.vocabulary.encode(line) for line in examples], self.line_end)

    def loss(self, model: nn.Module, batch: WindowBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the targets; the next batch starts from an empty state."""
        cost = super().loss(model, batch, ())
        return Loss(cost.total, cost.count)
