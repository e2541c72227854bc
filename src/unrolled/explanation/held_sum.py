"""A held run must give the model's own output, and so must the sum of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, ParityError, UnsupportedOperationError

__all__ = ["InfiniteHeldRunError", "check_sum", "refuse_infinite", "sum_gap"]

_SUM_TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 0.05, torch.float16: 0.01}
"""How far both may be from the model's own output, relative to the parts, by the coarsest type among them.

It is closer than :data:`unrolled.decomposition.opening.parity.PARITY`, since it is known here what rounds.
"""


class InfiniteHeldRunError(UnsupportedOperationError):
    """A held run gives NaN or infinity where the model gives a number."""


def refuse_infinite(logit: Tensor) -> None:
    """Refuse a logit of the model's own that is NaN or infinite."""
    if not torch.isfinite(logit).all():
        raise NonFiniteError(f"the logit is {logit.tolist()}; expected finite numbers")


def sum_gap(output: Tensor, expected: Tensor, parts: Sequence[Tensor | None], coarsest: torch.dtype) -> float | None:
    """Return how far a held run, or the sum of its parts, is from the model's own output; None if that is rounding.

    NaN or infinity where one of them is.
    """
    held = [part.detach() for part in parts if part is not None]
    close = max(_SUM_TOLERANCE[expected.dtype], _SUM_TOLERANCE[coarsest])
    size = close * sum((part.abs() for part in held), expected.abs())
    gap = (torch.stack((output.detach(), sum(held, torch.zeros_like(expected)))) - expected).abs()
    return None if bool((gap <= size).all()) else float(gap.max())


def check_sum(output: Tensor, expected: Tensor, parts: Sequence[Tensor | None], coarsest: torch.dtype) -> None:
    """Refuse a held run whose output, or the sum of whose parts, is not the model's own output."""
    refuse_infinite(expected)
    gap = sum_gap(output, expected, parts, coarsest)
    if gap is not None and not math.isfinite(gap):
        raise InfiniteHeldRunError(
            "a held run gives NaN or infinity where the model gives a number; explain the outputs one by one, "
            "without the padding that is masked"
        )
    if gap is not None:
        raise ParityError(
            f"the held run differs from the model's own output by {gap:.3g}; expected rounding at most: does the "
            "model draw random numbers, change at every call, or read an input again that a step changes in place?"
        )
