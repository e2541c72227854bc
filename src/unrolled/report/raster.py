"""The triangle of a long text as an image: each of its points shows the largest of the numbers that fall in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from unrolled.decomposition.bands import by_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["raster"]

WIDE, TALL = 4800, 2400
"""The most points of an image."""


def raster(band: Tensor, direction: str, longest: int) -> NDArray[np.float64]:
    """Lay one direction's band out by length and middle, shape (rows, columns); NaN outside the triangle.

    A number of k tokens stands k / 2 tokens to the right of its first token's left edge, as in the drawn triangle.
    """
    time, held = len(band), min(longest, band.shape[1])
    values = by_first(band, direction == "backward")
    wide, tall = min(2 * time, WIDE), min(held, TALL)
    largest = torch.full((tall * wide,), -torch.inf, dtype=torch.float64, device="cpu")
    least = torch.full_like(largest, torch.inf)
    starts = torch.arange(time, device="cpu")
    for k in range(held):
        row = k * tall // held * wide
        for half in (0, 1):  # a cell is two half tokens wide
            places = row + (2 * starts[: time - k] + k + half) * wide // (2 * time)
            largest.scatter_reduce_(0, places, values[: time - k, k], "amax")
            least.scatter_reduce_(0, places, values[: time - k, k], "amin")
    found = torch.where(largest.abs() >= least.abs(), largest, least)
    found[largest == -torch.inf] = torch.nan
    return found.reshape(tall, wide).numpy()
