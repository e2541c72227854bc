r"""The secant: what the state adds to what the input alone makes, in closed form.

.. math:: g_t = f(x_t, 0),\quad A_t s_{t-1} = f(x_t, s_{t-1}) - f(x_t, 0)

Every pre-activation is z = a + b, a of the input alone and b of the state. An activation has
φ(a + b) = φ(a) + S b with the slope S = (φ(a + b) - φ(a)) / b; a product has
AB - A₀B₀ = ½ (A₀ + A) ΔB + ½ (B₀ + B) ΔA, so each factor is the mean of its value with and without the state (the
Shapley value). The coefficients are held, and b, c, h carry the terms. It is exact up to rounding, without quadrature.
Unigrams keep their context-free meaning, as with ``path``; for an Elman network the two are the same.

Source:
    Ours.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import ConvergenceError, UnsupportedOperationError
from unrolled.expansions.base import Linearisation
from unrolled.expansions.path import Path
from unrolled.linalg.operators import Operator

__all__ = ["Secant"]


class Secant(Linearisation):
    """Split every step between the input alone and what the state adds."""

    name = "secant"
    exact = True
    local = False

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Take f(x, 0) and the secant; of a step with an operation that has no rule, the mean Jacobian of ``path``."""
        try:
            return ray.origin, ray.secant()
        except UnsupportedOperationError as error:
            why = str(error)
        try:
            return Path().expand(ray, tolerance)
        except UnsupportedOperationError as error:
            raise UnsupportedOperationError(f"{error}; by secant: {why}") from error
        except ConvergenceError as error:
            raise ConvergenceError(error.error, error.tolerance, error.expanded, why) from error
