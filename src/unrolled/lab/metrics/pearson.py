"""Pearson's correlation."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["pearson"]


def pearson(one: Tensor, other: Tensor) -> float:
    """Correlate two rows of numbers.

    Args:
        one: shape (n,).
        other: shape (n,).

    Returns:
        From -1 to 1; 0 where one of them does not vary, as it then says nothing of the other.

    Example:
        >>> import torch
        >>> pearson(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 4.0, 3.0]))
        -1.0
    """
    pair = torch.stack((one, other)).double()
    pair = pair - pair.mean(dim=1, keepdim=True)
    norms = pair.norm(dim=1)
    if not norms.all():
        return 0.0
    return float(((pair[0] / norms[0]) * (pair[1] / norms[1])).sum().clamp(-1.0, 1.0))
