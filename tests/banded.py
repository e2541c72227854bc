"""Bands by their definition, row by row."""

from __future__ import annotations

import torch


def banded(matrices: torch.Tensor) -> torch.Tensor:
    """Lay matrices of positions read and entered, of one or two directions, out by position read and length."""
    bands, time = torch.zeros_like(matrices), matrices.shape[-1]
    for d, matrix in enumerate(matrices):
        for read in range(time):
            row = matrix[read, read:] if d else matrix[read, : read + 1].flip(0)
            bands[d, read, : len(row)] = row
    return bands
