"""Integers that a model makes of the numbers of an argument, as of a column of categories in a table of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.held_forward.powers_of_two import base_of, exponents_of, numbers_told
from unrolled.held_forward.recorded_maps import image, pull_back
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["TO_INTEGERS", "entries_of"]

TO_INTEGERS = frozenset({"long", "int", "short", "to", "type", "type_as", "bucketize"})
"""Operations that may make integers of numbers."""
_ROUNDINGS_OF_AN_ENTRY = 8
"""How many roundings what an entry makes of its number may be off."""


def entries_of(value: Tensor, rows: Sequence[Row]) -> Tensor | None:
    """Return the number of the entry that each number of a value is made of, in the value's shape; -1 for none.

    None if one is made of several entries, or of anything else that carries value but biases and constants.
    """
    found = torch.full(value.shape, -1, dtype=torch.int64, device=value.device)
    inputs = [row for row in rows if row.kind in ("token", "category", "feature", "number", "computed")]
    reaching = pull_back(value, [row.leaf for row in inputs], torch.ones_like(value))
    for row in (row for row, gradient in zip(inputs, reaching, strict=True) if gradient is not None):
        leaf, coarsest = row.leaf, coarsest_type((value.dtype, row.leaf.dtype))
        count, base, ones = leaf.numel(), base_of(coarsest), torch.ones_like(leaf)
        exponents = [each.to(leaf.device) for each in exponents_of(count, base)]
        weights = (ones, *(torch.ldexp(ones, each.view_as(leaf)) for each in exponents))
        plain, *weighed = (image(value, [leaf], [each]) for each in weights)
        reached = torch.stack([each != 0 for each in (plain, *weighed)]).any(dim=0)
        if not bool(reached.any()):
            continue
        entry, off = numbers_told(plain, weighed, exponents, base, _ROUNDINGS_OF_AN_ENTRY * torch.finfo(coarsest).eps)
        if row.first < 0 or bool((reached & ((plain == 0) | off | (found >= 0))).any()):
            return None
        found = torch.where(reached, entry + row.first, found)
    return found if bool((found >= 0).any()) else None
