"""Rules that turn a family of tensors J(α), α in [0, 1], into one: a mean, a Taylor sum.

An expansion of a recurrent cell applies such a rule to the cell's Jacobian along a line. For a cell with a closed form
the tensors are the named diagonals of its Jacobian; for any other cell they are Jacobian-vector products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

__all__ = ["Along", "Named", "Rule", "gauss_legendre", "legendre_nodes", "relative_error", "taylor_sum"]


Named = dict[str, Tensor]
"""Tensors by name."""

Along = Callable[[Tensor | float], Named]
"""α -> the tensors at α."""

Rule = Callable[[Along], Named]
"""Makes one set of tensors out of the whole family."""


@lru_cache(maxsize=32)
def legendre_nodes(count: int) -> tuple[tuple[float, float], ...]:
    """Return pairs (node, weight) of Gauss-Legendre quadrature on [0, 1]; exact up to degree 2·count - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return tuple((float(0.5 + 0.5 * x), float(0.5 * w)) for x, w in zip(nodes, weights, strict=True))


def gauss_legendre(count: int) -> Rule:
    """Average over the line with ``count`` nodes: Σ_j w_j J(α_j) ≈ ∫₀¹ J(α) dα."""

    def rule(along: Along) -> Named:
        total: Named = {}
        for node, weight in legendre_nodes(count):
            for name, value in along(node).items():
                if name in total:
                    total[name].add_(value, alpha=weight)
                else:
                    total[name] = value * weight
        return total

    return rule


def taylor_sum(order: int) -> Rule:
    r"""Sum the first terms of the mean's Taylor series: Σ_{j<K} J^{(j)}(0) / (j+1)!.

    ∫₀¹ α^j dα = 1/(j+1), so this is the mean of the Taylor polynomial of J at 0. Nested forward mode gives the
    derivatives in α. Order 1 is J(0).
    """

    def derivative(function: Along) -> Along:
        def derived(alpha: Tensor | float) -> Named:
            assert isinstance(alpha, Tensor)
            return torch.func.jvp(function, (alpha,), (torch.ones_like(alpha),))[1]

        return derived

    def rule(along: Along) -> Named:
        total = along(0.0)
        first = next(iter(total.values()))
        zero = torch.zeros((), dtype=first.dtype, device=first.device)
        term = along
        for j in range(1, order):
            term = derivative(term)
            scale = 1.0 / math.factorial(j + 1)
            total = {name: total[name] + scale * value for name, value in term(zero).items()}
        return total

    return rule


def relative_error(wrong: Tensor, size: Tensor) -> Tensor:
    """Compute ‖wrong‖ / ‖size‖ over the last axis; where ``size`` is zero (a dead relu layer), ‖wrong‖ itself."""
    length = torch.linalg.vector_norm(size, dim=-1)
    return torch.linalg.vector_norm(wrong, dim=-1) / torch.where(length > 0, length, 1.0)
