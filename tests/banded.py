"""Bands by their definition, entry by entry."""

from __future__ import annotations

import torch


def banded(matrices: torch.Tensor) -> torch.Tensor:
    """Lay matrices of positions read and entered, of one or two directions, out by position read and length."""
    bands, time = torch.zeros_like(matrices), matrices.shape[-1]
    for d, matrix in enumerate(matrices):
        for read in range(time):
            for k in range(time - read if d else read + 1):
                bands[d, read, k] = matrix[read, read + k if d else read - k]
    return bands
