"""The axis of one argument's contributions that counts examples; None where they are of one example."""

from __future__ import annotations

from torch import Tensor

__all__ = ["keep_example", "rows_by_example", "without_example_axis"]


def rows_by_example(part: Tensor, axis: int | None, batch: int) -> Tensor:
    """Return the entries of each example in a row, shape (batch, entries)."""
    return part.reshape(1, -1) if axis is None else part.movedim(axis, 0).reshape(batch, -1)


def keep_example(part: Tensor, axis: int | None, example: int) -> Tensor:
    """Return the entries of one example; the axis stays."""
    return part if axis is None else part.narrow(axis, example, 1)


def without_example_axis(part: Tensor, axis: int | None) -> Tensor:
    """Leave out the axis from the entries of one example."""
    if axis is not None:
        return part.squeeze(axis)
    return part[0] if part.dim() > 1 and len(part) == 1 else part
