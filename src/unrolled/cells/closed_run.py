"""The run of a closed cell over a batch of sequences, and the operators that expansions make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.cells.capabilities import FirstOrderCell, GatedCell, MeanSlopesCell, Point, ShareSlopesCell
from unrolled.cells.ray import Ray
from unrolled.linalg.operators import Operator
from unrolled.linalg.quadrature import Named, Rule
from unrolled.linalg.structured import Structured

if TYPE_CHECKING:
    from unrolled.cells.closed_form import ClosedCell

__all__ = ["ClosedRay", "ClosedRun"]

_ALL = slice(None)
# How many numbers of one diagonal are computed together: fewer take more calls of torch, more leave a core's cache.
_CACHED = 100_000


@dataclass(frozen=True)
class ClosedRun(LayerRun):
    """A closed cell's run, with its linear products."""

    cell: ClosedCell
    from_input: Tensor
    """W x_t + b, shape (time, batch, K'·d)."""
    from_hidden: Tensor
    """U h_{t-1} + b', shape (time, batch, K·d)."""
    carried: Tensor
    """The first part of s_{t-1}, shape (time, batch, d)."""
    values: Named = field(default_factory=dict)
    """The activations, where the cell computes them apart."""

    def ray(self, origin: Tensor) -> ClosedRay:
        """Return the line from (origin, 0) to (x_t, s_{t-1}) for every step."""
        return ClosedRay(self, origin)


class ClosedRay(Ray[Structured]):
    """The ray of a closed cell: only element-wise work is left for each α."""

    def __init__(self, run: ClosedRun, origin: Tensor) -> None:
        super().__init__(run.image)
        self.cell, self.run, self.inputs = run.cell, run, origin
        self.moves = origin is not run.inputs
        self.start = F.linear(origin, run.cell.weight_ih, run.cell.bias_ih) if self.moves else run.from_input

    @property
    def is_affine(self) -> bool:
        """Whether the step is affine in all that moves along the ray."""
        return self.cell.linear and not self.moves

    def point(self, alpha: Tensor | float, steps: slice = _ALL) -> Point:
        """Return the arguments of φ at α, for some steps."""
        run, bias = self.run, self.cell.recurrent_bias
        start, x, h, carried = (v[steps] for v in (self.start, run.from_input, run.from_hidden, run.carried))
        if isinstance(alpha, float) and alpha == 1.0:
            return Point(x, h, carried)
        if isinstance(alpha, float) and alpha == 0.0:
            nothing = h.new_zeros(())
            return Point(start, (nothing if bias is None else bias).expand_as(h), nothing.expand_as(carried))
        if isinstance(alpha, Tensor):  # of a product with a constant torch's forward mode imports the compiler first
            nothing = h.new_zeros(())
            from_hidden = torch.lerp(nothing if bias is None else bias, h, alpha)
            return Point(torch.lerp(start, x, alpha), from_hidden, torch.lerp(nothing, carried, alpha))
        return Point(
            torch.lerp(start, x, alpha) if self.moves else start,
            alpha * h if bias is None else torch.lerp(bias, h, alpha),
            alpha * carried,
        )

    @cached_property
    def origin(self) -> Tensor:
        """f(x⁰_t, 0), shape (time, batch, state)."""
        return self.cell.join_parts(self.cell.parts_at(self._begin))

    @cached_property
    def _begin(self) -> Point:
        """The point at α = 0, with its activations."""
        point = self.point(0.0)
        return replace(point, values=self.cell.activations(*point))

    @cached_property
    def _end(self) -> Point:
        """The point at α = 1, with its activations."""
        point = self.point(1.0)
        return replace(point, values=self.run.values or self.cell.activations(*point))

    def operator_of(self, slopes: Callable[[slice], Named]) -> Structured:
        """Build the operator whose diagonals are given by name: every expansion of a closed cell ends here.

        Args:
            slopes: Returns the diagonals of some steps, each (steps, batch, d); one that is left out is zero. It is
                called for a few steps at a time, so that a rule with many nodes works within the cache.
        """
        time, batch, _ = self.run.carried.shape
        count = max(1, _CACHED // max(1, batch * self.cell.hidden_size))
        diagonals: Named = {}
        for first in range(0, time, count):
            steps = slice(first, first + count)
            for name, values in slopes(steps).items():  # copied at once, while the cache holds them
                if name not in diagonals:
                    diagonals[name] = values.new_empty(time, *values.shape[1:])
                diagonals[name][steps] = values
        cell = self.cell
        carry, recurrent_terms, input_terms = (
            tuple(term for term in terms if term.diagonal in diagonals)
            for terms in (cell.carry, cell.recurrent_terms, cell.input_terms)
        )
        return Structured(
            diagonals,
            cell.parts,
            carry,
            recurrent_terms,
            input_terms,
            recurrent=cell.recurrent_weight,
            inputs=cell.weight_ih,
            units=cell.hidden_size,
            projection=cell.weight_hr,
            mix=cell.mix if cell.mix in diagonals else None,
        )

    def operator(self, rule: Rule) -> Structured:
        """Apply a rule to the diagonals of the Jacobians along the ray."""
        return self.operator_of(lambda steps: rule(lambda alpha: self.cell.slopes(*self.point(alpha, steps))))

    def at(self, alpha: float) -> Structured:
        """Return the Jacobian at one point of every ray."""
        return self.operator_of(lambda steps: self.cell.factored_slopes(*self.point(alpha, steps)))

    def increment(self, operator: Operator) -> Tensor:
        """Apply the operators of all steps to (s_{t-1}, x_t - x⁰_t); the products of one of this ray are known."""
        run, bias = self.run, self.cell.recurrent_bias
        if not isinstance(operator, Structured):  # of an expansion that is a user's own
            return operator.apply(run.states[:-1], run.inputs - self.inputs)
        recurrent = inputs = None
        if operator.recurrent_terms:
            recurrent = run.from_hidden if bias is None else run.from_hidden - bias
        if operator.input_terms and self.moves:
            inputs = run.from_input - self.start
        return operator.weigh(run.carried, recurrent, inputs)

    def secant(self) -> Structured:
        """Return the secant of each step."""

        def slopes(steps: slice) -> Named:
            begin, end = self._begin[steps], self._end[steps]
            return self.cell.secant_slopes(begin, end if self.moves else replace(end, from_input=begin.from_input))

        return self.operator_of(slopes)

    def shares(self, share: float) -> Structured:
        """Return the operator of lines from zero; a step that is affine in all that moves is its own."""
        if self.is_affine:
            return self.at(0.5)
        return self.operator_of(lambda steps: self.cell.share_slopes(self._end[steps], share))

    def alone_by_shares(self, share: float) -> Structured:
        """Return the operator by which f(x⁰, 0) - f(0, 0) is linear in W x⁰ + b and b', lines beginning at zero."""
        cell = self.cell
        assert isinstance(cell, ShareSlopesCell)
        return self.operator_of(lambda steps: cell.alone_slopes(self._begin[steps], share))

    def mean_jacobian(self) -> Structured | None:
        """Return the mean Jacobian: declared by the cell, or at the midpoint if f is affine in all that moves."""
        cell = self.cell
        if isinstance(cell, MeanSlopesCell):
            return self.operator_of(lambda steps: cell.mean_slopes(self.point(0.0, steps), self.point(1.0, steps)))
        return self.at(0.5) if self.is_affine else None

    def fixed_gates(self) -> Structured:
        """Return the operator in which every gate keeps the value it took."""
        cell = self.cell
        if not isinstance(cell, GatedCell):
            return super().fixed_gates()
        return self.operator_of(lambda steps: cell.fixed_gate_slopes(*self.point(1.0, steps)))

    def first_order(self) -> Ray[Structured]:
        """Return the ray of the same tokens through the cell with its activations linearised at zero."""
        if not isinstance(self.cell, FirstOrderCell):
            return super().first_order()
        run = self.cell.first_order().run_from_outputs(self.inputs, self.cell.hidden(self.end))
        return run.ray(self.inputs)
