r"""The gates are fixed at the values they took.

.. math::
    \text{LSTM: } c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t,\; h_t = o_t ⊙ \frac{\tanh c_t}{c_t} ⊙ c_t
    \qquad \text{GRU: } h_t = z_t ⊙ h_{t-1} + (1 - z_t) ⊙ n_t

It is exact, and diagonal: no weight is applied. The effect of the context on a gate is part of the term of the token
that the gate scales, so long n-grams show memory and not interaction. An Elman network has no gates; the gain
(φ(z) - φ(0))/z of its activation replaces them.

Source:
    Murdoch and Szlam (2017), arXiv:1702.02540; Du et al. (2019), arXiv:1903.11258.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["FixedGates"]


class FixedGates(Linearisation):
    """Hold the gates fixed."""

    name = "gates"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return the operator with fixed gates, and the rest of the state as g."""
        operator = ray.fixed_gates()
        return ray.end - ray.increment(operator), operator
