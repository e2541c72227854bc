r"""The Taylor polynomial in the state, of order K along the ray.

.. math:: g_t = f(x_t, 0),\quad A_t = \sum_{j<K} \frac{1}{(j+1)!} \frac{d^j}{dα^j} J(x_t, α s_{t-1}) \Big|_{α=0}

so that g_t + A_t s_{t-1} is the polynomial. Order 1 is the zero expansion; where the series converges, its limit is the
path expansion.

Source:
    Ours; order 1 is Implicit n-grams, eq. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import UsageError
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator
from unrolled.linalg.quadrature import taylor_sum
from unrolled.whole_number import whole_number

__all__ = ["Taylor"]


class Taylor(Linearisation):
    """Expand to order K in the state.

    Args:
        order: K, from 1 to 8; each order doubles the cost of the nested derivatives.

    Raises:
        UsageError: If the order is no whole number, or outside that range.
    """

    name = "taylor"
    exact = False
    local = False

    def __init__(self, order: int = 2) -> None:
        whole = whole_number(order)
        if whole is None or not 1 <= whole <= 8:
            raise UsageError(f"taylor order is {order!r}; expected a whole number from 1 to 8")
        self.order = whole

    @classmethod
    def parse(cls, words: Sequence[str]) -> Taylor:
        """Build the expansion from ``taylor`` or ``taylor(K)``.

        Raises:
            UsageError: If the argument is not one whole number.
        """
        if not words:
            return cls()
        if len(words) > 1 or not words[0].isdecimal():
            raise UsageError(f"taylor({', '.join(words)}): expected one whole number, as in taylor(3)")
        return cls(int(words[0]))

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return f(x, 0) and the Taylor sum of the Jacobian."""
        return ray.origin, ray.operator(taylor_sum(self.order))

    def __str__(self) -> str:
        return f"taylor({self.order})"
