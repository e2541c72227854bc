r"""Rules that turn a family of tensors J(α), α in [0, 1], into one: a mean, a Taylor sum.

Every expansion of a recurrent cell is such a rule, or a look at one point, applied to its Jacobian along the line
from the origin to the point where the cell was. A rule never asks what the tensors are: for a cell with a closed form
they are the diagonal coefficients of its Jacobian, for any other cell they are Jacobian-vector products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

__all__ = ["Along", "Rule", "gauss_legendre", "legendre_nodes", "taylor_sum"]

Along = Callable[[Tensor | float], tuple[Tensor, ...]]
"""α -> the tensors at α."""

Rule = Callable[[Along], tuple[Tensor, ...]]
"""What makes one tuple of tensors out of the whole family."""


@lru_cache(maxsize=32)
def legendre_nodes(count: int) -> tuple[tuple[float, float], ...]:
    """Gauss-Legendre nodes and weights on [0, 1].

    Args:
        count: how many nodes; a polynomial of degree 2·count - 1 is integrated exactly.

    Returns:
        Pairs (node, weight).
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return tuple((float(0.5 + 0.5 * x), float(0.5 * w)) for x, w in zip(nodes, weights, strict=True))


def gauss_legendre(count: int) -> Rule:
    """Average over the line: Σ_j w_j J(α_j) ≈ ∫₀¹ J(α) dα.

    Args:
        count: how many nodes.

    Returns:
        The rule.
    """

    def rule(along: Along) -> tuple[Tensor, ...]:
        total: list[Tensor] = []
        for node, weight in legendre_nodes(count):
            values = along(node)
            if total:
                for sum_, value in zip(total, values, strict=True):
                    sum_.add_(value, alpha=weight)
            else:
                total = [value * weight for value in values]
        return tuple(total)

    return rule


def taylor_sum(order: int) -> Rule:
    r"""Sum the first terms of the mean's Taylor series: Σ_{j<K} J^{(j)}(0) / (j+1)!.

    ∫₀¹ α^j dα = 1/(j+1), so this is what the mean becomes when J is replaced by its Taylor polynomial at 0.
    The derivatives in α are taken by nested forward mode.

    Args:
        order: K, at least 1; 1 is J(0).

    Returns:
        The rule.
    """

    def derivative(function: Along) -> Along:
        def derived(alpha: Tensor | float) -> tuple[Tensor, ...]:
            assert isinstance(alpha, Tensor)
            return torch.func.jvp(function, (alpha,), (torch.ones_like(alpha),))[1]

        return derived

    def rule(along: Along) -> tuple[Tensor, ...]:
        first = along(0.0)
        zero = torch.zeros((), dtype=first[0].dtype, device=first[0].device)
        total = first
        term = along
        for j in range(1, order):
            term = derivative(term)
            scale = 1.0 / math.factorial(j + 1)
            total = tuple(s + scale * d for s, d in zip(total, term(zero), strict=True))
        return total

    return rule
