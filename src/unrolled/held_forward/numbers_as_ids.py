"""Integers that a model makes of the numbers of an argument, as of a column of categories in a table of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.held_forward.recorded_maps import image, pull_back
from unrolled.held_forward.rows import Row

__all__ = ["TO_INTEGERS", "entries_of"]

TO_INTEGERS = frozenset({"long", "int", "short", "to", "type", "type_as", "bucketize"})
"""Operations that may make integers of numbers."""
CLOSE = 64
"""How many roundings what an entry makes of its number may be off."""


def entries_of(value: Tensor, rows: Sequence[Row]) -> Tensor | None:
    """Return the number of the entry that each number of a value is made of, in the value's shape; -1 for none.

    None if one is made of several entries, or of anything else that carries value but biases and constants.
    """
    found = torch.full(value.shape, -1, dtype=torch.int64, device=value.device)
    inputs = [row for row in rows if row.kind in ("token", "category", "feature", "number", "computed")]
    reaching = pull_back(value, [row.leaf for row in inputs], torch.ones_like(value))
    for row in (row for row, gradient in zip(inputs, reaching, strict=True) if gradient is not None):
        ones, numbers = torch.ones_like(row.leaf), torch.arange(row.leaf.numel(), device=value.device)
        drawn = torch.rand(row.leaf.numel(), generator=torch.Generator().manual_seed(0), device="cpu").to(row.leaf)
        scale, at_drawn = (image(value, [row.leaf], [each]) for each in (ones, drawn.view_as(row.leaf)))
        reached = (scale != 0) | (at_drawn != 0)
        if not bool(reached.any()):
            continue
        numbered = image(value, [row.leaf], [numbers.to(row.leaf).view_as(row.leaf)])
        entry = torch.where(scale != 0, numbered / torch.where(scale != 0, scale, 1.0), -1.0).round().long()
        inside = (entry >= 0) & (entry < row.leaf.numel())
        gap = (at_drawn - scale * drawn[entry.clamp(0, row.leaf.numel() - 1)]).abs()
        exact = gap <= CLOSE * torch.finfo(value.dtype).eps * scale.abs()
        if row.first < 0 or bool((reached & ~(inside & exact & (found < 0))).any()):
            return None
        found = torch.where(reached, entry + row.first, found)
    return found if bool((found >= 0).any()) else None
