r"""The line from the empty state to the state of the network, and the cell's Jacobian along it.

For every step t the ray runs from (x⁰_t, 0) to (x_t, s_{t-1}). In the lowest layer x⁰ = x: only the state moves. In a
higher layer the input is the state of the layer below, so it moves too; x⁰ is what that layer computes from the token
alone. Along the ray

    f(x, s) - f(x⁰, 0) = (∫₀¹ ∂f/∂(s, x) dα) · (s, x - x⁰)

so averages along it give exact expansions layer by layer, without a product of averaged operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.held_forward.outside.taken_places import TakenPlaces
from unrolled.held_forward.step_derivative import with_all_derivatives
from unrolled.held_forward.step_operator import HeldStep
from unrolled.linalg.matrices import small_as_matrices
from unrolled.linalg.operators import MatrixFree, Operator
from unrolled.linalg.quadrature import Rule

__all__ = ["MatrixFreeRay", "Ray"]

O = TypeVar("O", bound=Operator)  # noqa: E741  # an operator type: the field's letter


class Ray(ABC, Generic[O]):
    """The Jacobian of one layer along its ray, for all steps at once."""

    def __init__(self, end: Tensor) -> None:
        self.end = end
        """f(x_t, s_{t-1}) as the network computed it, shape (time, batch, state)."""

    @property
    @abstractmethod
    def origin(self) -> Tensor:
        """f(x⁰_t, 0): the state after each token alone, shape (time, batch, state)."""

    @abstractmethod
    def operator(self, rule: Rule) -> O:
        """Apply a rule to the Jacobians along the ray: one operator for each step."""

    def at(self, alpha: float) -> O:
        """Return the Jacobian at one point of every ray."""
        return self.operator(lambda along: along(alpha))

    @abstractmethod
    def increment(self, operator: O) -> Tensor:
        """Apply the operators of all steps to the displacement (s_{t-1}, x_t - x⁰_t): shape (time, batch, state)."""

    def mean_jacobian(self) -> O | None:
        """Return the mean of the Jacobian in closed form; None where it must be integrated."""
        return None

    def small_as_matrices(self, operator: Operator) -> Operator:
        """Return the matrices of a small layer where products with them take less time; else the operator itself."""
        return operator

    @abstractmethod
    def secant(self) -> O:
        """Return the secant of each step: what the state adds to what the input alone makes, in closed form."""

    @abstractmethod
    def shares(self, share: float) -> O:
        """Return the operator in which every non-linearity's line begins at zero.

        Args:
            share: p, the part of a gated product that is credited to its content; 1 - p is credited to the gate.
        """

    def fixed_gates(self) -> O:
        """Return the operator in which every gate keeps the value it took.

        Raises:
            UsageError: If the cell declares no gates.
        """
        raise UsageError("this cell declares no gates: choose another expansion, such as 'secant'")

    def first_order(self) -> Ray[O]:
        """Return the ray of the same tokens through the cell with its activations linearised at zero.

        Raises:
            UsageError: If the cell declares no such form.
        """
        raise UsageError("this cell has no activation expansion: choose another expansion, such as 'secant'")


class MatrixFreeRay(Ray[Operator]):
    """The ray of any differentiable cell.

    Args:
        step: (inputs, state) -> new state, on leading axes of any shape.
        origin: Inputs at α = 0, shape (time, batch, input).
        inputs: Inputs at α = 1, same shape.
        states: s_0 … s_T, shape (time + 1, batch, state).
        stored: Whether matrices may be computed, by a run of the step on all columns.
    """

    def __init__(
        self,
        step: Callable[[Tensor, Tensor], Tensor],
        origin: Tensor,
        inputs: Tensor,
        states: Tensor,
        stored: bool = True,
    ) -> None:
        super().__init__(states[1:])
        self.step, self.stored = step, stored
        self.start = origin
        self.displacement = inputs - origin
        self.before = states[:-1]
        self.taken = TakenPlaces()
        """Where the step gives Python numbers, of which no derivative is known."""

    @cached_property
    def origin(self) -> Tensor:
        """f(x⁰_t, 0), shape (time, batch, state)."""
        return self.step(self.start, self.before.new_zeros(self.before.shape))

    @cached_property
    def _differentiated_step(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The step; one that torch does not differentiate is refused here, and not in the middle of a sweep."""
        first = self.start[:1], self.before[:1]
        step = with_all_derivatives(self.step, self.taken)
        torch.func.jvp(step, first, tuple(map(torch.ones_like, first)))
        return step

    def operator(self, rule: Rule) -> MatrixFree:
        """Apply a rule to the Jacobians along the ray."""
        return MatrixFree(self._differentiated_step, self.start, self.displacement, self.before, rule)

    def small_as_matrices(self, operator: Operator) -> Operator:
        """Return the matrices of a small layer if they may be stored, else the operator itself."""
        return small_as_matrices(operator) if self.stored else operator

    def secant(self) -> Operator:
        """Return the secant, built from the operations of the step."""
        return HeldStep(self.step, self.start, self.start + self.displacement, self.before).ready(self.stored)

    def shares(self, share: float) -> Operator:
        """Return the operator of lines from zero, built from the operations of the step."""
        return HeldStep(self.step, self.start, self.start + self.displacement, self.before, share).ready(self.stored)

    def increment(self, operator: Operator) -> Tensor:
        """Apply the operators of all steps to (s_{t-1}, x_t - x⁰_t)."""
        return operator.apply(self.before, self.displacement)
