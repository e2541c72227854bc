"""What a closed cell can declare beyond its step: each class here is one capability, opened by one expansion.

A cell declares a capability by deriving from its class. :class:`~unrolled.cells.closed_run.ClosedRay` asks for it
with ``isinstance`` and builds the operator from the diagonals it returns.

To add a capability: a class here with an abstract method that returns named diagonals, a method of ``Ray`` that raises
UsageError, and the same method of ``ClosedRay``, which passes the diagonals to ``operator_of``.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from unrolled.linalg.activations import Activation
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term, block

__all__ = [
    "FirstOrderCell",
    "GatedCell",
    "MeanSlopesCell",
    "Point",
    "ShareSlopesCell",
    "repeated_diagonals",
    "repeated_terms",
]


@dataclass(frozen=True)
class Point:
    """The arguments of a closed cell's element-wise function; it unpacks into the first three."""

    from_input: Tensor
    """z^x = W x + b, shape (…, K'·d)."""
    from_hidden: Tensor
    """z^h = U h + b', shape (…, K·d)."""
    carried: Tensor
    """The first part of the previous state, shape (…, d)."""
    values: Named = field(default_factory=dict)
    """What the cell's activations take at this point, where that is known; see :class:`ActivatedCell`."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.from_input, self.from_hidden, self.carried))

    def __getitem__(self, steps: slice) -> Point:
        values = {name: value[steps] for name, value in self.values.items()}
        return Point(self.from_input[steps], self.from_hidden[steps], self.carried[steps], values)

    def pre_activation(self, product: int, units: int) -> Tensor:
        """Return z^x + z^h of one product."""
        return block(self.from_input, product, units) + block(self.from_hidden, product, units)

    def pre_activation_step(self, end: Point, product: int, units: int) -> Tensor:
        """Return how far z^x + z^h of one product is from here to ``end``.

        A z^x that does not move is the same tensor in both.
        """
        step = block(end.from_hidden, product, units) - block(self.from_hidden, product, units)
        if end.from_input is self.from_input:
            return step
        return step.add_(block(end.from_input, product, units)).sub_(block(self.from_input, product, units))

    def towards(self, end: Point, alpha: float | Tensor) -> Point:
        """Return the point at ``alpha`` on the line from this point to ``end``."""
        x, h, carried = (torch.lerp(start, stop, alpha) for start, stop in zip(self, end, strict=True))
        return Point(x, h, carried)


class ActivatedCell(ABC):
    """A cell that computes its activations apart, so that all formulas at one point share them.

    ``elementwise`` is then ``parts_of(activations(…), carried)``.
    """

    @abstractmethod
    def activations(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Return the values of all activations at a point, by name."""

    @abstractmethod
    def parts_of(self, values: Named, carried: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of the new state before any projection, made of the activations."""

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ."""
        return self.parts_of(self.activations(from_input, from_hidden, carried), carried)

    def values_at(self, point: Point) -> Named:
        """Return the activations at a point: as they are known, or computed."""
        return point.values or self.activations(*point)

    def parts_at(self, point: Point) -> tuple[Tensor, ...]:
        """Compute φ at a point, from its activations where they are known."""
        return self.parts_of(self.values_at(point), point.carried)


class GatedCell(ABC):
    """A cell whose gates can be held fixed: the expansion ``gates``."""

    @abstractmethod
    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Return the diagonals of the operator in which every gate keeps its value at this point.

        A diagonal that is left out is zero.
        """


class MeanSlopesCell(ABC):
    """A cell whose mean Jacobian along a line has a closed form: the expansion ``path`` needs no quadrature."""

    @abstractmethod
    def mean_slopes(self, origin: Point, end: Point) -> Named:
        """Return every diagonal of the Jacobian, averaged over the line from ``origin`` to ``end``."""


class ShareSlopesCell(ABC):
    """A cell whose φ holds no parameters, and whose lines from zero have a closed form.

    What a token alone makes, f(x, 0), then goes back to x and to both biases by named diagonals.
    """

    @abstractmethod
    def alone_slopes(self, end: Point, share: float) -> Named:
        """Return the diagonals of the operator whose lines begin at zero and end at a point with nothing carried.

        Those that multiply what is carried are left out.
        """


class FirstOrderCell:
    """A cell whose only non-linear functions are attributes of type Activation: the expansion ``activation``."""

    def first_order(self) -> Self:
        """Return a cell that shares the weights, with each activation φ(x) replaced by φ(0) + φ'(0)·x."""
        surrogate = copy.copy(self)
        for name in {*dir(type(self)), *vars(self)}:
            value = inspect.getattr_static(self, name)
            if isinstance(value, Activation):
                setattr(surrogate, name, value.first_order())
        return surrogate


def repeated_terms(*terms: Term) -> tuple[Term, ...]:
    """Repeat the terms of the cell part in the hidden part; their diagonals get the prefix ``hidden_``."""
    return terms + tuple(Term("hidden", f"hidden_{term.diagonal}", term.product) for term in terms)


def repeated_diagonals(diagonals: Named, factor: Tensor) -> Named:
    """Add the diagonals that :func:`repeated_terms` names: those of the cell part times ``factor``."""
    return diagonals | {f"hidden_{name}": factor * values for name, values in diagonals.items()}
