"""Pearson's correlation."""

from __future__ import annotations

import numpy as np
from torch import Tensor

__all__ = ["pearson"]


def pearson(x: Tensor, y: Tensor) -> float:
    """Correlate two vectors of the same length with NumPy; 0 and not NaN if either is constant.

    Example:
        >>> import torch
        >>> round(pearson(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 4.0, 3.0])), 12)
        -1.0
    """
    if (x == x[0]).all() or (y == y[0]).all():
        return 0.0
    return float(np.corrcoef(x.double().numpy(force=True), y.double().numpy(force=True))[0, 1])
