"""The relative error of vectors."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["relative_error"]


def relative_error(wrong: Tensor, size: Tensor) -> Tensor:
    """Compute ‖wrong‖ / ‖size‖ over the last axis; where ``size`` is zero (a dead relu layer), ‖wrong‖ itself."""
    length = torch.linalg.vector_norm(size, dim=-1)
    return torch.linalg.vector_norm(wrong, dim=-1) / torch.where(length > 0, length, 1.0)
