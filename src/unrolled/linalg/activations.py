r"""Activations: element-wise functions with their slopes.

The activation expansion replaces a cell's activations by their expansions at zero, σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["RELU", "SIGMOID", "TANH", "Activation", "mean_slope", "slope_from_zero", "slope_of_step", "with_share"]


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
    short_mean: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None
    """(b - a, φ(b) - φ(a), φ(a), φ(b)) -> the mean of φ' from a to b, which nearly coincide; None if φ has a kink."""

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
            lambda step, _, __, ___: torch.full_like(step, factor),
        )


def _short_sigmoid(step: Tensor, rise: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """σ(b) - σ(a) = 2m tanh(h), m = (σ(a) + σ(b))/2 - σ(a)σ(b), h = (b - a)/2.

    The mean is m tanh(h)/h = m - m h²/3 + …, and m h² is a fourth of step times rise.
    """
    return torch.lerp(first, last, 0.5).addcmul_(first, last, value=-1).addcmul_(step, rise, value=-1 / 12)


def _short_tanh(step: Tensor, rise: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """tanh(b) - tanh(a) = m tanh(h), m = 1 - tanh(a)tanh(b), h = b - a; m h² is step times rise."""
    return torch.addcmul(first.new_ones(()), first, last, value=-1).addcmul_(step, rise, value=-1 / 3)


def _slope_of_sigmoid(_: Tensor, value: Tensor) -> Tensor:
    return torch.addcmul(value, value, value, value=-1)


def _slope_of_tanh(_: Tensor, value: Tensor) -> Tensor:
    return 1 - value * value


def _slope_of_relu(x: Tensor, _: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


# named functions, not lambdas: a cell that holds an activation can then be pickled
SIGMOID = Activation("sigmoid", torch.sigmoid, _slope_of_sigmoid, (0.5, 0.25), _short_sigmoid)
TANH = Activation("tanh", torch.tanh, _slope_of_tanh, (0.0, 1.0), _short_tanh)
RELU = Activation("relu", torch.relu, _slope_of_relu, None)


def mean_slope(activation: Activation, start: Tensor, stop: Tensor) -> Tensor:
    r"""Compute the mean slope between a and b, element-wise: ∫₀¹ φ'(a + α(b-a)) dα = (φ(b) - φ(a)) / (b - a).

    Where a and b nearly coincide, the quotient loses digits; a series replaces it. A φ with a kink is piecewise
    linear: its quotient is exact.
    """
    first, last, step = activation(start), activation(stop), stop - start
    if activation.short_mean is not None:
        return slope_of_step(activation, step, first, last)
    near = (step == 0).to(step.dtype)
    return torch.lerp((last - first).div_(step.add_(near)), activation.slope(stop, last), near)


def slope_of_step(activation: Activation, step: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Compute (φ(b) - φ(a)) / (b - a) of a smooth φ from b - a, which it overwrites, and both values, element-wise."""
    assert activation.short_mean is not None
    near, rise = _near(step), last - first
    short = activation.short_mean(step, rise, first, last)
    # a weight of 0 or 1: torch.where takes four times as long
    return rise.div_(step.add_(near)).lerp_(short, near)


def _near(step: Tensor) -> Tensor:
    """Return 1 where a step is so short that a quotient loses digits, and 0 elsewhere."""
    # the first term that a series leaves out is then no larger than what the quotient loses
    return (step * step).lt_(torch.finfo(step.dtype).eps ** 0.4)


def slope_from_zero(activation: Activation, stop: Tensor, at_stop: Tensor) -> Tensor:
    """Compute (φ(z) - φ(0)) / z from z and φ(z), element-wise."""
    if activation == TANH:  # tanh keeps its digits near zero; at zero itself the quotient is 1
        least = torch.copysign(stop.new_full((), torch.finfo(stop.dtype).tiny), stop)
        return (at_stop + least).div_(least.add_(stop))
    if activation == SIGMOID:
        near, rise = _near(stop), at_stop - 0.5
        short = torch.addcmul(rise.new_full((), 0.25), rise, rise, value=-1 / 3)  # finite, however large z is
        return rise.div_(stop + near).lerp_(short, near)
    return mean_slope(activation, stop.new_zeros(()), stop)


def with_share(gate: Activation, value: Tensor, share: float) -> Tensor:
    """Compute γ₀ + p (γ - γ₀): of a gate's value γ, the part that multiplies its content by a share p."""
    return torch.lerp(gate(value.new_zeros(())), value, share)
