"""What a closed cell can declare beyond its step: each class here is one capability, opened by one expansion.

A cell declares a capability by deriving from its class. :class:`~unrolled.cells.closed_form.ClosedRay` asks for it
with ``isinstance`` and builds the operator from the diagonals it returns.

To add a capability: a class here with an abstract method that returns named diagonals, a method of ``Ray`` that raises
UsageError, and the same method of ``ClosedRay``, which passes the diagonals to ``operator_of``.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import torch
from torch import Tensor

from unrolled.linalg.activations import Activation
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term

__all__ = ["FirstOrderCell", "GatedCell", "MeanSlopesCell", "Point", "repeated_diagonals", "repeated_terms"]


class Point(NamedTuple):
    """The arguments of a closed cell's element-wise function."""

    from_input: Tensor
    """z^x = W x + b, shape (…, K'·d)."""
    from_hidden: Tensor
    """z^h = U h + b', shape (…, K·d)."""
    carried: Tensor
    """The first part of the previous state, shape (…, d)."""

    def towards(self, end: Point, alpha: float | Tensor) -> Point:
        """Return the point at ``alpha`` on the line from this point to ``end``."""
        return Point(*(torch.lerp(start, stop, alpha) for start, stop in zip(self, end, strict=True)))


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
