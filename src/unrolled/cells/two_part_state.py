"""The terms of a state [c; h] where h' = o ⊙ φ(c'): h' has every term of c', scaled by q = o ⊙ φ'(c')."""

from __future__ import annotations

from torch import Tensor

from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term

__all__ = ["repeated_diagonals", "repeated_terms"]


def repeated_terms(*terms: Term) -> tuple[Term, ...]:
    """Repeat the terms of the cell part in the hidden part; their diagonals get the prefix ``hidden_``."""
    return terms + tuple(Term("hidden", f"hidden_{term.diagonal}", term.product) for term in terms)


def repeated_diagonals(diagonals: Named, factor: Tensor) -> Named:
    """Add the diagonals that :func:`repeated_terms` names: those of the cell part times ``factor``."""
    return diagonals | {f"hidden_{name}": factor * values for name, values in diagonals.items()}
