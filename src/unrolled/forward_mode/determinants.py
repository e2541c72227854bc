"""Determinants whose derivatives of any order forward mode computes.

Source:
    Bird (2011), A simple division-free algorithm for computing determinants, Information Processing Letters 111.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["det", "logdet", "slogdet"]

_SMALL = 8
"""Up to so many rows a determinant is computed without divisions, and so has its derivatives where it is zero too."""


class _Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


def det(a: Tensor) -> Tensor:
    """Compute ``torch.linalg.det``."""
    if a.shape[-1] > _SMALL:
        sign, factors = _triangular_factors(a)
        return reduce(torch.mul, factors.unbind(-1), sign)
    # Bird's algorithm loses digits where terms cancel. In a diagonal matrix none do, and constant rotations make it one
    left, values, right = torch.linalg.svd(a.detach())
    turned = torch.diag_embed(values) + left.mH @ (a - a.detach()) @ right.mH
    found = turned
    for _ in range(a.shape[-1] - 1):  # Bird's algorithm
        from_here = found.diagonal(dim1=-2, dim2=-1).flip(-1).cumsum(-1).flip(-1)
        found = (torch.diag_embed(F.pad(from_here[..., 1:], (0, 1))) - found.triu(1)) @ turned
    return torch.linalg.det(left) * torch.linalg.det(right) * found[..., 0, 0]


def _triangular_factors(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return a sign, and numbers on the last axis: their product is the determinant."""
    permutation, _, upper = torch.linalg.lu(a)
    return torch.linalg.det(permutation), upper.diagonal(dim1=-2, dim2=-1)


def slogdet(a: Tensor) -> _Slogdet:
    """Compute ``torch.linalg.slogdet``."""
    sign, factors = _triangular_factors(a)
    return _Slogdet(sign * factors.sgn().prod(-1), factors.abs().log().sum(-1))


def logdet(a: Tensor) -> Tensor:
    """Compute ``torch.logdet``."""
    sign, logarithm = slogdet(a)
    return sign.log() + logarithm if a.is_complex() else torch.where(sign < 0, torch.nan, logarithm)
