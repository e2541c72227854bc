r"""Activations as pairs of a value and a slope, so that a cell can be written once and linearised by exchange.

A cell that computes with ``sigmoid`` and ``tanh`` becomes its own first-order surrogate when the two are replaced
by their expansions at zero, σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x: that exchange is the activation expansion.
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
    """An element-wise function φ with its slope φ', the latter written in terms of x and y = φ(x).

    Args:
        name: its usual name.
        value: φ.
        slope: (x, φ(x)) -> φ'(x); most slopes are cheaper from the value that is already there.
        at_zero: (φ(0), φ'(0)), or None where φ has no slope at zero.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]
    at_zero: tuple[float, float] | None

    def __call__(self, x: Tensor) -> Tensor:
        """Apply φ element-wise."""
        return self.value(x)

    def first_order(self) -> Activation:
        """Expand φ at zero: x -> φ(0) + φ'(0)·x.

        Returns:
            The linear activation.

        Raises:
            UsageError: when φ has no slope at zero.

        Source:
            Sequence-level features, eq. 3-4.
        """
        if self.at_zero is None:
            raise UsageError(
                f"{self.name} has no slope at 0, so it has no activation expansion; expected tanh or sigmoid"
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
    r"""Average the slope between two points: ∫₀¹ φ'(a + α(b-a)) dα = (φ(b) - φ(a)) / (b - a).

    Where the two points nearly coincide the quotient loses its digits; two Gauss nodes, off by (b-a)⁴φ⁗'/4320, then
    serve better. A kinked φ is piecewise linear: its quotient loses none.

    Args:
        activation: φ.
        start: a, of a shape that broadcasts to b's.
        stop: b, any shape.

    Returns:
        The mean slope, element-wise.
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
