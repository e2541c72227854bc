"""Whether all numbers of a tensor are finite, told by their sum."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["has_finite_sum"]


def has_finite_sum(values: Tensor) -> bool:
    """Tell that all numbers are finite, without a tensor of answers: a sum is finite only if all its terms are.

    False says less: the sum of finite numbers may overflow.
    """
    return bool(torch.isfinite(values.sum()))
