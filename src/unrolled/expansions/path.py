r"""The Jacobian averaged along the ray from the empty state.

.. math:: g_t = f(x_t, 0),\quad A_t = \int_0^1 \frac{∂f}{∂s}(x_t, α s_{t-1})\, dα

It is exact by the fundamental theorem of calculus, and it has the papers' g: every unigram has its context-free
meaning. The integral is computed by Gauss-Legendre quadrature; all steps share the weights, so only the diagonals are
averaged. The number of nodes doubles until the measured error of a step is below the tolerance, or no longer falls: the
rest is rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import ConvergenceError
from unrolled.expansions.base import Linearisation
from unrolled.linalg.operators import Operator
from unrolled.linalg.quadrature import gauss_legendre, relative_error

__all__ = ["Path"]

_FIRST, _LAST = 6, 192
"""Numbers of nodes at which a quadrature begins and gives up."""
SETTLED, UNCHANGED = 2, 0.01
"""It gives up as well where so many doublings have changed no error: a jump, which no node of a slope can see.

An error has not changed if its change is accepted as an error, and is at most this share of the largest one: at a
large tolerance a slope that jumps, as that of relu does, changes the error by less than the tolerance, and lowers it.
"""


def _step_errors(ray: Ray[Any], g: Tensor, operator: Operator) -> Tensor:
    """Compute the relative error of each single step, ‖s_t - g_t - A_t s_{t-1}‖ / ‖s_t‖.

    Args:
        ray: The line whose end is s_t.
        g: Shape (time, batch, state).
        operator: The operators A of all steps.
    """
    return relative_error(ray.end - g - ray.increment(operator), ray.end)


class Path(Linearisation):
    """Average the Jacobian from the empty state to the state of the network."""

    name = "path"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Return f(x, 0) and the mean Jacobian: in closed form if the cell has one, else by quadrature.

        Raises:
            ConvergenceError: If the error of a step is above the tolerance at the largest number of nodes, or more
                nodes do not change it. The operator is then that of the fewest nodes that have this error.
        """
        closed = ray.mean_jacobian()
        if closed is not None:
            return ray.origin, closed
        rounding = torch.finfo(ray.end.dtype).eps
        accepted = max(tolerance, 4 * rounding)
        error, nodes = float("inf"), _FIRST
        known: list[tuple[Tensor, Operator]] = []
        while True:
            operator: Operator = replace(ray.operator(gauss_legendre(nodes)), by_quadrature=True)
            errors = _step_errors(ray, ray.origin, operator)
            previous, error = error, float(errors.max())
            stalled = error > 0.5 * previous and error < 1000 * rounding
            if error <= accepted or stalled:
                return ray.origin, ray.small_as_matrices(operator)
            alike = min(accepted, UNCHANGED * error)
            known = [each for each in known if bool(((each[0] - errors).abs() <= alike).all())]
            known.append((errors, operator))
            if nodes >= _LAST or len(known) > SETTLED:
                raise ConvergenceError(error, accepted, (ray.origin, ray.small_as_matrices(known[0][1])))
            nodes *= 2
