r"""The Jacobian at the operating point: the state of the network.

.. math:: A_t = ∂f/∂s \,|_{s_{t-1}},\quad g_t = f(x_t, s_{t-1}) - A_t s_{t-1}

It is exact by construction, and the cheapest of the exact expansions. g_t depends on the prefix: it is the token's
addition to the tangent, not the token's meaning by itself.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["Operating"]


class Operating(Linearisation):
    """Linearise at the state of the network."""

    name = "operating"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return the Jacobian at the end of the ray, and the rest of the state as g."""
        operator = ray.at(1.0)
        return ray.end - ray.increment(operator), operator
