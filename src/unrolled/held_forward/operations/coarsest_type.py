"""The type of least precision that numbers pass through: it bounds how closely two runs of a model can agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from unrolled.held_forward.operations.operands import carries, operands

__all__ = ["coarsest_type", "with_type_of_value"]


def coarsest_type(types: Iterable[torch.dtype]) -> torch.dtype:
    """Return the type of least precision among several."""
    return max(types, key=lambda each: torch.finfo(each).eps)


def with_type_of_value(coarsest: torch.dtype, result: Any) -> torch.dtype:
    """Return the coarsest of a type and of those of all tensors of a result that carry value."""
    for each in operands((result,)):
        if carries(each) and each.dtype != coarsest:
            coarsest = coarsest_type((coarsest, each.dtype.to_real()))
    return coarsest
