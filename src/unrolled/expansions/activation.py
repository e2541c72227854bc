r"""The first-order expansion of the activations: σ(x) ≈ 1/2 + x/4, tanh(x) ≈ x.

It is the zero expansion of the cell whose activations are replaced by their expansions at zero. For a GRU and an LSTM
it gives the paper's closed forms.

Source:
    Sequence-level features, eq. 3-17.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["ActivationExpansion"]


class ActivationExpansion(Linearisation):
    """Linearise the activations at zero, then the cell at zero."""

    name = "activation"
    exact = False
    local = True

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return f(x, 0) and the Jacobian there, of the cell with linearised activations."""
        surrogate = ray.first_order()
        return surrogate.origin, surrogate.at(0.0)
