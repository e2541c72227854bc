r"""Running text in columns, read window by window: truncated backpropagation through time.

A text of N tokens is cut into as many columns as a batch has rows, as equal in length as can be (some are one token
longer than others), and all columns are read side by side, a window of some tokens at a time. A recurrent network
goes on where the window before it ended, so the windows come in order.

Every token of the text is predicted exactly once a pass, its first and its last too. A column begins with the
token that stands before it in the text; what stands before the whole text is the caller's to say.

Source:
    Williams and Peng (1990), An efficient gradient-based algorithm for on-line training of recurrent network
    trajectories; the columns are those of Zaremba et al. (2014), arXiv:1409.2329, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.vocabulary import PADDING

__all__ = ["RunningText", "WindowBatch", "WindowPlan"]


@dataclass(frozen=True)
class WindowBatch(Batch):
    """Some tokens of every column."""

    tokens: Tensor
    """What is read, shape (columns, time), int64."""
    targets: Tensor
    """What follows each, shape (columns, time), int64; ``PADDING`` where a column has ended."""


class WindowPlan(Sequence[Tensor]):
    """The windows of one pass, each worked out when it is asked for.

    Args:
        tokens: N, of the whole text.
        columns: how many; each has one token at least.
        width: how many tokens of a column a window has.
        first: how many the first window has.
    """

    def __init__(self, tokens: int, columns: int, width: int, first: int) -> None:
        steps = torch.arange(columns + 1)
        self._bounds = tokens // columns * steps + steps.clamp(max=tokens % columns)
        self._longest = -(-tokens // columns)
        self._width, self._first = width, min(first, self._longest)

    def __len__(self) -> int:
        return 1 + -(-(self._longest - self._first) // self._width)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | list[Tensor]:
        """Give the place of one window, or of some.

        Args:
            index: which.

        Returns:
            Where in the text its part of each column begins and ends, shape (columns, 2), int64.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        begin = 0 if number == 0 else self._first + (number - 1) * self._width
        begins = self._bounds[:-1] + begin
        ends = begins + (self._first if number == 0 else self._width)
        return torch.stack((begins, torch.minimum(ends, self._bounds[1:])), dim=1)


@dataclass(frozen=True)
class RunningText:
    """A text in numbers, to be predicted token by token."""

    indices: Tensor
    """Shape (tokens,), int32 or int64; may lie in a file that is mapped to memory."""
    before: int
    """The token that stands before the first."""
    width: int
    """How many tokens of a column a window has."""

    def __post_init__(self) -> None:
        if not len(self.indices):
            raise DataError("a split has no tokens; expected at least one")

    def __len__(self) -> int:
        return len(self.indices)

    def plan(self, size: int, generator: torch.Generator | None = None) -> WindowPlan:
        """Cut the text into columns and these into windows.

        Args:
            size: how many columns; fewer when the text has fewer tokens.
            generator: draws how long the first window is, so that the cuts fall elsewhere at every pass; without
                one it is as long as the others.

        Returns:
            The windows, in the order of the text.

        Raises:
            UsageError: when ``size`` is not positive.
        """
        if size < 1:
            raise UsageError(f"the batch size is {size}; expected 1 or more")
        first = self.width
        if generator is not None:
            first = 1 + int(torch.randint(self.width, (), generator=generator))
        return WindowPlan(len(self), min(size, len(self)), self.width, first)

    def select(self, which: Tensor) -> WindowBatch:
        """Lay the columns' parts of a window side by side.

        Args:
            which: where they begin and end, shape (columns, 2); an entry of a plan.

        Returns:
            The window, as wide as its longest part.
        """
        begins, ends = which[:, :1], which[:, 1:]
        places = begins + torch.arange(-1, int((ends - begins).max()))
        found = self.indices[places.clamp(0, len(self) - 1)].long()
        tokens = found[:, :-1].masked_fill(places[:, :-1] < 0, self.before)
        return WindowBatch(tokens, found[:, 1:].masked_fill(places[:, 1:] >= ends, PADDING))
