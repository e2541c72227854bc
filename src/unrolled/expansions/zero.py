r"""The papers' expansion: the Jacobian at the empty state.

.. math:: g_t = f(x_t, 0),\quad A_t = ∂f/∂s \,|_{s=0}

Every term depends on its own tokens alone, so an n-gram has one meaning at every place. The terms do not sum to the
state. In the paper's trained networks a single step is off by 15 to 47% of its state on average; over a sentence the
errors add up.

Source:
    Implicit n-grams, eq. 5-7; appendix on approximation errors.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator

__all__ = ["Zero"]


class Zero(Linearisation):
    """Linearise at the empty state."""

    name = "zero"
    exact = False
    local = True

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return f(x, 0) and the Jacobian there."""
        return ray.origin, ray.at(0.0)
