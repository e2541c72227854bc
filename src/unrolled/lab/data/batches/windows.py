"""Truncated backpropagation through time: running text in columns, read window by window.

A text of N tokens is cut into as many columns as a batch has rows; their lengths differ by one token at most. All
columns are read side by side, a window of some tokens at a time. A recurrent network keeps its state from window to
window, so the windows are in order.

Every token of the text is predicted exactly once in a pass, also the first and the last. A column begins with the token
before it in the text; the caller provides the token before the whole text.

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
    """A window of every column."""

    tokens: Tensor
    """The tokens to read, shape (columns, time), int64."""
    targets: Tensor
    """The token after each, shape (columns, time), int64; ``PADDING`` after the end of a column."""


class WindowPlan(Sequence[Tensor]):
    """The bounds of the windows of one pass, computed on request.

    Args:
        tokens: The number of tokens of the text.
        columns: The number of columns, at most ``tokens``.
        width: How many tokens of a column a window has.
        first: How many the first window has.
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
        """Return where each column's part of a window begins and ends in the text, shape (columns, 2), int64."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        begin = 0 if number == 0 else self._first + (number - 1) * self._width
        begins = self._bounds[:-1] + begin
        ends = begins + (self._first if number == 0 else self._width)
        return torch.stack((begins, torch.minimum(ends, self._bounds[1:])), dim=1)


@dataclass(frozen=True)
class RunningText:
    """A text as token indices, to predict token by token."""

    indices: Tensor
    """Shape (tokens,), int32 or int64; may be a file that is mapped to memory."""
    before: int
    """The token before the first."""
    width: int
    """How many tokens of a column a window has."""

    def __post_init__(self) -> None:
        if not len(self.indices):
            raise DataError("a split has no tokens; expected at least one")

    def __len__(self) -> int:
        return len(self.indices)

    def plan(self, size: int, generator: torch.Generator | None = None) -> WindowPlan:
        """Cut the text into columns and windows, in the order of the text.

        Args:
            size: The number of columns, fewer if the text has fewer tokens; UsageError if it is not positive.
            generator: Draws the length of the first window, so that each pass cuts the text at other places. Without
                one the first window is as long as the others.
        """
        if size < 1:
            raise UsageError(f"the batch size is {size}; expected 1 or more")
        first = self.width
        if generator is not None:
            first = 1 + int(torch.randint(self.width, (), generator=generator))
        return WindowPlan(len(self), min(size, len(self)), self.width, first)

    def select(self, which: Tensor) -> WindowBatch:
        """Return the window with these bounds, an entry of a plan."""
        begins, ends = which[:, :1], which[:, 1:]
        places = begins + torch.arange(-1, int((ends - begins).max()))
        found = self.indices[places.clamp(0, len(self) - 1)].long()
        tokens = found[:, :-1].masked_fill(places[:, :-1] < 0, self.before)
        return WindowBatch(tokens, found[:, 1:].masked_fill(places[:, 1:] >= ends, PADDING))
