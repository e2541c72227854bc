"""A held run must give the model's own output, and so must the sum of its parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, ParityError, UnsupportedOperationError

__all__ = ["check_sum"]

# How far the held run, and the sum of its parts, may be from the model's own output, relative to the parts.
CLOSE = {torch.float64: 1e-10, torch.float32: 2e-5}


def check_sum(output: Tensor, expected: Tensor, parts: Sequence[Tensor | None]) -> None:
    """Compare the held run, and the sum of its parts, with the model's own output."""
    if not torch.isfinite(expected).all():
        raise NonFiniteError(f"the logit is {expected.tolist()}; expected finite numbers")
    held = [part.detach() for part in parts if part is not None]
    size = CLOSE[expected.dtype] * sum((part.abs() for part in held), expected.abs())
    for found in (output.detach(), sum(held, torch.zeros_like(expected))):
        if not torch.isfinite(found).all():
            raise UnsupportedOperationError(
                "a held run gives NaN or infinity where the model gives a number; explain the outputs one by one, "
                "without the padding that is masked"
            )
        gap = (found - expected).abs()
        if not bool((gap <= size).all()):
            raise ParityError(
                f"the held run differs from the model's own output by {float(gap.max()):.3g}; expected rounding at "
                "most: does the model draw random numbers, or change at every call?"
            )
