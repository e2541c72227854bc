r"""The Jacobian at the operating point: where the network was.

.. math:: A_t = ∂f/∂s \,|_{s_{t-1}},\quad g_t = f(x_t, s_{t-1}) - A_t s_{t-1}

Exact by construction, and the cheapest of the exact ones. g_t depends on the prefix: it is what the token added to the
tangent, not what it means alone.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["Operating"]


class Operating(Linearisation):
    """Linearise where the network was."""

    name = "operating"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Take the Jacobian at the end of the ray and what it leaves of the state."""
        operator = ray.at(1.0)
        return ray.end - ray.increment(operator), operator
