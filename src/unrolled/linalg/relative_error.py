"""How far one vector is from another, relative to its length."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["relative_error"]


def relative_error(wrong: Tensor, size: Tensor) -> Tensor:
    """Compute ‖wrong‖ / ‖size‖ over the last axis; where the vector is zero (a dead relu layer), ‖wrong‖ itself.

    Args:
        wrong: the differences, shape (…, n).
        size: the vectors they are judged by, shape (…, n).

    Returns:
        Shape (…).
    """
    length = torch.linalg.vector_norm(size, dim=-1)
    return torch.linalg.vector_norm(wrong, dim=-1) / torch.where(length > 0, length, 1.0)
