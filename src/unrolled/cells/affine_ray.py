r"""The line from nothing to where an affine cell was.

Where only the state moves, the Jacobian is A(x_t) all along, so that its mean is A itself; the slopes of W x, which
are affine in the state, have their mean at the midpoint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from unrolled.cells.closed_form_ray import ALL, ClosedRay
from unrolled.linalg.operators import Structured

if TYPE_CHECKING:
    from unrolled.cells.affine import AffineCell

__all__ = ["AffineRay"]


class AffineRay(ClosedRay):
    """The ray of an affine cell; its trace holds the products in use, without a bias."""

    cell: AffineCell

    def point(self, alpha: Tensor | float, steps: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
        """Give (z^x, U h, carried) at α."""
        x, trace = self.trace.by_input[steps], self.trace
        start = self.start[steps]
        return (
            start + alpha * (x - start) if self.moves else x,
            alpha * trace.by_hidden[steps],
            alpha * trace.carried[steps],
        )

    def structured(self, coefficients: tuple[Tensor, ...]) -> Structured:
        """Make the operator with the cell's own pattern of terms and the products in use."""
        return replace(super().structured(coefficients), recurrent=self.cell.recurrent)

    def increment(self, operator: Structured) -> Tensor:
        """Apply an operator to (s_{t-1}, x_t - x⁰_t): the products are at hand."""
        inputs = self.trace.by_input - self.start if self.moves else None
        return operator.combine(self.carried, self.trace.by_hidden, inputs)

    def mean_jacobian(self) -> Structured | None:
        """Average the Jacobian in closed form, where only the state moves."""
        return None if self.moves else self.at(0.5)
