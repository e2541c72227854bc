"""A sum of element-wise products, computed in one tensor: Σ value ⊙ weight."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

__all__ = ["weighted_sum"]


def weighted_sum(
    summands: Iterable[tuple[Tensor, Tensor]], initial: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Compute ``initial`` + Σ value ⊙ weight.

    Args:
        summands: Pairs (value, weight).
        initial: What the products are added to; None starts with the first product.
        out: Receives the sum, which autograd then does not follow. It may be ``initial``. Required where there may be
            neither a summand nor an initial tensor: it is then set to zero.
    """
    total = initial
    for value, weight in summands:
        if total is None:
            total = torch.mul(value, weight, out=out)
        else:
            total = torch.addcmul(total, value, weight, out=out)
    if total is None:
        assert out is not None
        return out.zero_()
    return total if out is None or total is out else out.copy_(total)
