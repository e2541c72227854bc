"""Weights that number what a gradient comes from: powers of two, which pass through linear operations unrounded."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["CLOSE_TO_WHOLE", "base_of", "digits_of", "exponents_of", "numbers_told"]

CLOSE_TO_WHOLE = 0.01
"""How far the logarithm of a weight that passed through a model may be from its exponent, a whole number."""
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


def exponents_of(count: int, base: int) -> list[Tensor]:
    """Return the exponents of weights for the numbers below ``count``: their digits, and others that check these.

    What several readers make of their weights may be a third one's: ⅔ · 1 + ⅓ · 4 = 2, and ½ · 2³ + ½ · 2³⁰ is nearly
    2²⁹. The mirror of a digit d, base - 1 - d, shows it: the mean of numbers and the mean of their inverses are inverse
    only if the numbers are alike. Drawn exponents show what differs little there.
    """
    digits = digits_of(count, base)
    drawn = torch.randint(base, (count,), generator=torch.Generator().manual_seed(0), device="cpu")
    return [*digits, *(base - 1 - each for each in digits), drawn]


def numbers_told(
    plain: Tensor, weighed: Sequence[Tensor], exponents: Sequence[Tensor], base: int, close: float
) -> tuple[Tensor, Tensor]:
    """Return the number that each entry comes from, and whether it comes from none alone.

    Args:
        plain: The entries without weights; they tell nothing where they are zero.
        weighed: The entries by the weights of each digit of the numbers, the lowest first, then by the checks.
        exponents: Of these weights, each shape (count,).
        base: Of the digits.
        close: How far the logarithm of a weight may be from its exponent.
    """
    used, count = plain != 0, len(exponents[-1])
    places = len(digits_of(count, base))
    divisor = torch.where(used, plain, torch.ones_like(plain))
    powers = [torch.where(used, each / divisor, 1.0).clamp_min(0.5).log2() for each in weighed]
    digits = [power.round().long().clamp(0, base - 1) for power in powers[:places]]
    number = sum((digit * base**k for k, digit in enumerate(digits)), torch.zeros_like(used, dtype=torch.int64))
    off = used & (number >= count)
    number = number.clamp_max(count - 1)
    for power, each in zip(powers, exponents, strict=True):
        off |= used & ((power - each[number]).abs() > close)
    return number, off
