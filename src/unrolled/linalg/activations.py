r"""Activations: element-wise functions with their slopes.

The activation expansion replaces a cell's activations by their expansions at zero, σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["RELU", "SIGMOID", "TANH", "Activation", "mean_slope"]


@dataclass(frozen=True)
class Activation:
    """An element-wise function φ with its slope φ'."""

    name: str
    value: Callable[[Tensor], Tensor]
    """φ."""
    slope: Callable[[Tensor, Tensor], Tensor]
    """(x, φ(x)) -> φ'(x); most slopes are cheaper to compute from the known value."""
    at_zero: tuple[float, float] | None
    """(φ(0), φ'(0)), or None where φ has no slope at zero."""

    def __call__(self, x: Tensor) -> Tensor:
        """Apply φ element-wise."""
        return self.value(x)

    def first_order(self) -> Activation:
        """Return the linear activation x -> φ(0) + φ'(0)·x.

        Raises:
            UsageError: If φ has no slope at zero.

        Source:
            Sequence-level features, eq. 3-4.
        """
        if self.at_zero is None:
            raise UsageError(
                f"{self.name} has no slope at 0, so it has no activation expansion; choose tanh or sigmoid"
            )
        constant, factor = self.at_zero
        return Activation(
            f"{constant:g} + {factor:g}x",
            lambda x: constant + factor * x,
            lambda x, _: torch.full_like(x, factor),
            self.at_zero,
        )


SIGMOID = Activation("sigmoid", torch.sigmoid, lambda _, y: torch.addcmul(y, y, y, value=-1), (0.5, 0.25))
TANH = Activation("tanh", torch.tanh, lambda _, y: 1 - y * y, (0.0, 1.0))
RELU = Activation("relu", torch.relu, lambda x, _: (x > 0).to(x.dtype), None)


def mean_slope(activation: Activation, start: Tensor, stop: Tensor) -> Tensor:
    r"""Compute the mean slope between a and b, element-wise: ∫₀¹ φ'(a + α(b-a)) dα = (φ(b) - φ(a)) / (b - a).

    Where a and b nearly coincide, the quotient loses digits; two Gauss nodes, with error (b-a)⁴φ⁗'/4320, replace it. A
    φ with a kink is piecewise linear: its quotient is exact.
    """
    step = stop - start
    near = step == 0 if activation.at_zero is None else step.abs() < torch.finfo(step.dtype).eps ** 0.2
    slope = (activation(stop) - activation(start)) / step
    close = near.nonzero(as_tuple=True)
    if close[0].numel():
        middle, half = (start + 0.5 * step)[close], (step * (0.5 / math.sqrt(3)))[close]
        nodes = (middle - half, middle + half)
        slope[close] = 0.5 * sum(activation.slope(x, activation(x)) for x in nodes)
    return slope
