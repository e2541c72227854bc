r"""Affine cells whose g and A are polynomials in the token, with the cut-off that keeps them bounded.

Without an activation nothing holds such a state in bounds: on its largest corpus, Sequence-level features cuts
every entry off at ±1.5. A cut-off at the end, s' = clamp(g + A s), has a closed mean slope as well: each part's
slopes are multiplied by (clamp(b) - clamp(a)) / (b - a) between the two ends, which is exact where quadrature
could not see the kink.

Source:
    Sequence-level features, section 5.2 and appendix A.4.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.cells.affine import AffineCell
from unrolled.cells.affine_ray import AffineRay
from unrolled.cells.closed_form_ray import ClosedRun
from unrolled.errors import UsageError
from unrolled.kernels.affine_scan import Pattern
from unrolled.linalg.activations import Activation, mean_slope
from unrolled.linalg.operators import Structured
from unrolled.linalg.quadrature import gauss_legendre

__all__ = ["PolynomialCell"]

# f is of degree 3 along the ray, its slopes of degree 2: two Gauss nodes average them exactly.
EXACT_NODES = 2


class PolynomialCell(AffineCell):
    """An affine cell made of sums and products alone, of degree 3 at most in the token and the state together.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; an affine cell has no projection.
        clamp: the bound at which every entry of a new state is cut off, 1.5 in the paper, or None; with it
            the cell is affine only as far as nothing reaches the bound.

    Raises:
        UsageError: when the bound is not positive.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        proj_size: int = 0,
        clamp: float | None = None,
    ) -> None:
        if clamp is not None and not clamp > 0:
            raise UsageError(f"clamp is {clamp}; expected a positive bound, such as 1.5, or None")
        super().__init__(input_size, hidden_size, bias, proj_size)
        self.pattern = Pattern(self.carry, self.recurrent_terms, self.hidden_size, clamp)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Give the diagonals of A and the slopes of W x; none where a part is cut off."""
        slopes = super().slopes(by_input, by_hidden, carried)
        if self.pattern.clamp is None:
            return slopes
        parts = self.pattern.weigh(*self.expand(by_input), by_hidden, carried)
        return self.scaled(slopes, tuple(self.cut.slope(part, part) for part in parts))

    @property
    def cut(self) -> Activation:
        """The cut-off as an activation."""
        bound = torch.inf if self.pattern.clamp is None else self.pattern.clamp
        return Activation("clamp", lambda x: x.clamp(-bound, bound), lambda x, _: (x.abs() <= bound).to(x.dtype), None)

    def scaled(self, slopes: tuple[Tensor, ...], factors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Multiply the slopes of each part of the state by that part's factor.

        Args:
            slopes: as :meth:`slopes` orders them.
            factors: one a part, each (…, d).

        Returns:
            The slopes, each (…, d).
        """
        owners = {a: part for part, a in enumerate(self.carry) if a is not None}
        owners.update({term.coefficient: term.part for term in (*self.recurrent_terms, *self.input_terms)})
        return tuple(slope * factors[owners[place]] for place, slope in enumerate(slopes))

    def first_order(self) -> PolynomialCell:
        """Give the cell itself, which has no activation to expand."""
        return self

    def draw(self, trace: ClosedRun, origin: Tensor) -> PolynomialRay:
        """Draw the ray, whose mean Jacobian is known."""
        return PolynomialRay(trace, origin)


class PolynomialRay(AffineRay):
    """A ray along which the cell, before its cut-off, is a polynomial."""

    cell: PolynomialCell

    def mean_jacobian(self) -> Structured:
        """Average the Jacobian in closed form, also where the token moves and where the state is cut off."""
        cell = self.cell

        def few(steps: slice) -> tuple[Tensor, ...]:
            rule = gauss_legendre(EXACT_NODES)
            slopes = rule(lambda alpha: AffineCell.slopes(cell, *self.point(alpha, steps)))
            if cell.pattern.clamp is None:
                return slopes
            ends = (self.point(alpha, steps) for alpha in (0.0, 1.0))
            start, stop = (cell.pattern.weigh(*cell.expand(x), h, c) for x, h, c in ends)
            return cell.scaled(slopes, tuple(mean_slope(cell.cut, a, b) for a, b in zip(start, stop, strict=True)))

        return self.structured(self.coefficients(few))
