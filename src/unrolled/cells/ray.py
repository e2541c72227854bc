r"""The line from nothing to where the network was, and the cell's Jacobian along it.

For every step t the ray runs from (x⁰_t, 0) to (x_t, s_{t-1}). In the lowest layer x⁰ = x: only the state moves. In a
higher layer the input is itself a state of the layer below, so it moves too, from what that layer makes of the
token alone. Along the ray

    f(x, s) - f(x⁰, 0) = (∫₀¹ ∂f/∂(s, x) dα) · (s, x - x⁰)

which is why averages along it give exact expansions, layer by layer, without a product of averaged operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

from torch import Tensor

from unrolled.errors import UsageError
from unrolled.linalg.operators import MatrixFree, Operator
from unrolled.linalg.quadrature import Rule

__all__ = ["MatrixFreeRay", "Ray"]

O = TypeVar("O", bound=Operator)  # noqa: E741  # an operator type: the field's letter


class Ray(ABC, Generic[O]):
    """The Jacobian of one layer along its ray, for all steps at once.

    Args:
        end: f(x_t, s_{t-1}) as the network went, shape (time, batch, state).
    """

    def __init__(self, end: Tensor) -> None:
        self.end = end

    @property
    @abstractmethod
    def origin(self) -> Tensor:
        """f(x⁰_t, 0): what each token makes of an empty state, shape (time, batch, state)."""

    @abstractmethod
    def operator(self, rule: Rule) -> O:
        """Make one operator a step out of the Jacobians along the ray.

        Args:
            rule: what is made of them.

        Returns:
            The operators of all steps.
        """

    def at(self, alpha: float) -> O:
        """Take the Jacobian at one point of every ray.

        Args:
            alpha: where, 0 to 1.

        Returns:
            The operators of all steps.
        """
        return self.operator(lambda along: along(alpha))

    @abstractmethod
    def increment(self, operator: O) -> Tensor:
        """Apply an operator to the ray's own displacement (s_{t-1}, x_t - x⁰_t).

        Args:
            operator: operators of all steps.

        Returns:
            The image, shape (time, batch, state).
        """

    def mean_jacobian(self) -> O | None:
        """The mean of the Jacobian in closed form, where the cell has one; None where it must be integrated."""
        return None

    def gated(self) -> O:
        """The operator in which every gate keeps the value it took.

        Raises:
            UsageError: when the cell declares no gates.
        """
        raise UsageError("this cell declares no gates; expected another expansion, such as 'path'")

    def first_order(self) -> Ray[O]:
        """The same tokens through the cell's first-order surrogate.

        Raises:
            UsageError: when the cell has none.
        """
        raise UsageError("this cell has no activation expansion; expected another expansion, such as 'path'")


class MatrixFreeRay(Ray[MatrixFree]):
    """The ray of any differentiable cell.

    Args:
        step: (inputs, state) -> new state, on leading axes of any shape.
        origin: inputs at α = 0, shape (time, batch, input).
        inputs: inputs at α = 1, shape (time, batch, input).
        states: s_0 … s_T, shape (time + 1, batch, state).
    """

    def __init__(
        self, step: Callable[[Tensor, Tensor], Tensor], origin: Tensor, inputs: Tensor, states: Tensor
    ) -> None:
        super().__init__(states[1:])
        self.step = step
        self.start = origin
        self.displacement = inputs - origin
        self.before = states[:-1]

    @cached_property
    def origin(self) -> Tensor:
        """f(x⁰_t, 0), shape (time, batch, state)."""
        return self.step(self.start, self.before.new_zeros(self.before.shape))

    def operator(self, rule: Rule) -> MatrixFree:
        """Make one operator a step out of the Jacobians along the ray."""
        return MatrixFree(self.step, self.start, self.displacement, self.before, rule)

    def increment(self, operator: MatrixFree) -> Tensor:
        """Apply an operator to (s_{t-1}, x_t - x⁰_t), all steps at once."""
        return operator.apply(self.before, self.displacement)
