r"""Activations: element-wise functions with their slopes.

The activation expansion replaces a cell's activations by their expansions at zero, σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x.
"""

from __future__ import annotations

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
    short_mean: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """(b - a, φ(a), φ(b)) -> the mean of φ' between a and b, which nearly coincide; None for a piecewise linear φ."""

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
            lambda step, _, __: torch.full_like(step, factor),
        )


def _tanh_over(h: Tensor) -> Tensor:
    """Compute tanh(h)/h of a small h; the next term of the series is 17h⁶/315."""
    square = h * h
    return square.mul(2 / 15).sub_(1 / 3).mul_(square).add_(1)


def _short_sigmoid(step: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """σ(b) - σ(a) = (σ(a)(1 - σ(b)) + σ(b)(1 - σ(a))) tanh((b - a)/2)."""
    return (first + last).addcmul_(first, last, value=-2).mul_(0.5).mul_(_tanh_over(0.5 * step))


def _short_tanh(step: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """tanh(b) - tanh(a) = (1 - tanh(a) tanh(b)) tanh(b - a)."""
    return (first * last).neg_().add_(1).mul_(_tanh_over(step))


SIGMOID = Activation(
    "sigmoid", torch.sigmoid, lambda _, y: torch.addcmul(y, y, y, value=-1), (0.5, 0.25), _short_sigmoid
)
TANH = Activation("tanh", torch.tanh, lambda _, y: 1 - y * y, (0.0, 1.0), _short_tanh)
RELU = Activation("relu", torch.relu, lambda x, _: (x > 0).to(x.dtype), None)


def mean_slope(
    activation: Activation,
    start: Tensor,
    stop: Tensor,
    at_start: Tensor | None = None,
    at_stop: Tensor | None = None,
) -> Tensor:
    r"""Compute the mean slope between a and b, element-wise: ∫₀¹ φ'(a + α(b-a)) dα = (φ(b) - φ(a)) / (b - a).

    Where a and b nearly coincide, the quotient loses digits; a series replaces it. A φ with a kink is piecewise
    linear: its quotient is exact. φ(a) and φ(b) are computed where they are not given.
    """
    first = activation(start) if at_start is None else at_start
    last = activation(stop) if at_stop is None else at_stop
    step = stop - start
    if activation.short_mean is None:
        near = (step == 0).to(step.dtype)
        short = activation.slope(stop, last)
    else:
        near = step.abs().lt_(torch.finfo(step.dtype).eps ** 0.2)
        # beyond the bounds the series is not used, and must be finite
        short = activation.short_mean(step.clamp(-1, 1), first, last)
    # a weight of 0 or 1: torch.where takes three times as long
    return torch.lerp((last - first).div_(step.add_(near)), short, near)
