"""Weights that number what a gradient comes from: powers of two, which pass through linear operations unrounded."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["base_of", "digits_of", "drawn_exponents"]

_BASE = 32
"""Digits of a number: weights are at most 2 to the power of 31."""
_BASE_OF_HALF = 8
"""The same for float16, which ends at 2 to the power of 16."""


def base_of(dtype: torch.dtype) -> int:
    """Return how many exponents of two a type has room for."""
    return _BASE_OF_HALF if dtype == torch.float16 else _BASE


def digits_of(count: int, base: int) -> list[Tensor]:
    """Return the digits of the numbers below ``count``, the lowest first, each shape (count,): exponents of weights."""
    numbers = torch.arange(count, device="cpu")
    found = []
    while bool(numbers.any()):
        found.append(numbers % base)
        numbers = numbers // base
    return found


def drawn_exponents(count: int, base: int) -> Tensor:
    """Return a random exponent for each number below ``count``: what digits say of a single reader holds for it too."""
    return torch.randint(base, (count,), generator=torch.Generator().manual_seed(0), device="cpu")
