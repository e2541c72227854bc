r"""The gates keep the values they took.

.. math::
    \text{LSTM: } c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t,\; h_t = o_t ⊙ \frac{\tanh c_t}{c_t} ⊙ c_t
    \qquad \text{GRU: } h_t = z_t ⊙ h_{t-1} + (1 - z_t) ⊙ n_t

Exact, and diagonal: no product with a weight at all. What the context does through the gates is credited to the
token that used it, so long n-grams carry memory, not interaction. An Elman network has no gates; there the gain
(φ(z) - φ(0))/z that its activation took plays their part.

Source:
    Murdoch and Szlam (2017), arXiv:1702.02540; Du et al. (2019), arXiv:1903.11258.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["Gates"]


class Gates(Linearisation):
    """Freeze the gates."""

    name = "gates"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Take the frozen operator and what it leaves of the state."""
        operator = ray.fixed_gates()
        return ray.end - ray.increment(operator), operator
