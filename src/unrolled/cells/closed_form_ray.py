r"""A closed cell's run and the ray it draws: products are taken once, and only element-wise work is left for each α."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.cells.layer_run import LayerRun
from unrolled.cells.ray import Ray
from unrolled.linalg.operators import Structured
from unrolled.linalg.quadrature import Rule

if TYPE_CHECKING:
    from unrolled.cells.closed_form import ClosedCell

__all__ = ["ClosedRay", "ClosedRun"]

ALL = slice(None)

# How many numbers of one coefficient are worked on together: about a dozen such arrays fit a core's own cache.
CACHED = 24_576


@dataclass(frozen=True)
class ClosedRun(LayerRun):
    """A closed cell's run, with its linear products: they are taken once, whatever is then made of them."""

    cell: ClosedCell
    by_input: Tensor
    """W x_t + b, shape (time, batch, K'·d)."""
    by_hidden: Tensor
    """U h_{t-1} + b', shape (time, batch, K·d)."""
    carried: Tensor
    """The first part of s_{t-1}, shape (time, batch, d)."""

    def ray(self, origin: Tensor) -> ClosedRay:
        """Draw the line from (origin, 0) to (x_t, s_{t-1}) for every step."""
        return self.cell.draw(self, origin)


class ClosedRay(Ray[Structured]):
    """The ray of a closed cell: its products are taken once, and only element-wise work is left for each α.

    Args:
        trace: the run whose states are the far ends.
        origin: inputs at α = 0, shape (time, batch, input); ``trace.inputs`` itself where they do not move.
    """

    def __init__(self, trace: ClosedRun, origin: Tensor) -> None:
        cell = trace.cell
        super().__init__(trace.image)
        self.cell = cell
        self.trace = trace
        self.inputs = origin
        moves = origin is not trace.inputs
        self.start = F.linear(origin, cell.weight_ih, cell.bias_ih) if moves else trace.by_input
        self.carried = trace.carried
        self.moves = moves

    def point(self, alpha: Tensor | float, steps: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
        """Give (z^x, z^h, carried) at α.

        Args:
            alpha: where on the line, 0 to 1.
            steps: which steps.

        Returns:
            Three tensors, shape (steps, batch, …).
        """
        start, x, h, carried = (
            values[steps] for values in (self.start, self.trace.by_input, self.trace.by_hidden, self.carried)
        )
        if isinstance(alpha, float) and alpha == 1.0:
            return x, h, carried
        bias = self.cell.bias_hh
        return (
            torch.lerp(start, x, alpha) if self.moves else start,
            alpha * h if bias is None else torch.lerp(bias, h, alpha),
            alpha * carried,
        )

    @cached_property
    def origin(self) -> Tensor:
        """f(x⁰_t, 0), shape (time, batch, state)."""
        return self.cell.join(self.cell.combine(*self.point(0.0)))

    def structured(self, coefficients: tuple[Tensor, ...]) -> Structured:
        """Make the operator with the cell's own pattern of terms.

        Args:
            coefficients: one tensor a slope, shape (time, batch, d).

        Returns:
            The operators of all steps.
        """
        cell = self.cell
        return Structured(
            coefficients,
            cell.carry,
            cell.recurrent_terms,
            cell.input_terms,
            cell.weight_hh,
            cell.weight_ih,
            cell.hidden_size,
            cell.weight_hr,
        )

    def diagonal(self, coefficients: tuple[Tensor, ...]) -> Structured:
        """Make an operator that only carries: no product with a weight at all.

        Args:
            coefficients: one a part of the state, shape (time, batch, d).

        Returns:
            The operators of all steps.
        """
        cell = self.cell
        carry = tuple(range(len(coefficients)))
        return Structured(coefficients, carry, (), (), cell.weight_hh, cell.weight_ih, cell.hidden_size, cell.weight_hr)

    def coefficients(self, few: Callable[[slice], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Compute coefficients a few steps at a time, so that a rule with many nodes works within the cache.

        Args:
            few: gives the coefficients of some steps.

        Returns:
            Those of all steps, each (time, batch, d).
        """
        time, batch, _ = self.carried.shape
        count = max(1, CACHED // (batch * self.cell.hidden_size))
        pieces = [few(slice(first, first + count)) for first in range(0, time, count)]
        return tuple(torch.cat(parts) for parts in zip(*pieces, strict=True))

    def operator(self, rule: Rule) -> Structured:
        """Make one operator a step out of the Jacobians along the ray: the rule sees the diagonals alone."""
        return self.structured(
            self.coefficients(lambda steps: rule(lambda alpha: self.cell.slopes(*self.point(alpha, steps))))
        )

    def increment(self, operator: Structured) -> Tensor:
        """Apply an operator to (s_{t-1}, x_t - x⁰_t): the products are at hand."""
        trace, bias = self.trace, self.cell.bias_hh
        recurrent = inputs = None
        if operator.recurrent_terms:
            recurrent = trace.by_hidden if bias is None else trace.by_hidden - bias
        if operator.input_terms and self.moves:
            inputs = trace.by_input - self.start
        return operator.combine(self.carried, recurrent, inputs)

    def gated(self) -> Structured:
        """The operator in which every gate keeps the value it took."""
        return self.cell.gates(self)

    def first_order(self) -> ClosedRay:
        """The same tokens through the cell's first-order surrogate."""
        surrogate = self.cell.first_order()
        return surrogate.draw(surrogate.follow(self.inputs, self.cell.hidden(self.end)), self.inputs)
