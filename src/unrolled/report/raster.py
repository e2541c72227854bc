"""The triangle of a long text as an image: each of its points shows the largest of the numbers that fall in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from unrolled.decomposition.attribution.bands import by_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["raster"]

_WIDE, _TALL = 4800, 2400
"""The most points of an image."""


def raster(
    band: Tensor, direction: str, longest: int, further: Sequence[int] = (), without: Sequence[int] = ()
) -> NDArray[np.float64]:
    """Lay one direction's band out by length and middle, shape (rows, columns); NaN outside the triangle.

    A number of k tokens stands k / 2 tokens to the right of its first token's left edge, as in the drawn triangle.

    Args:
        band: The numbers by position read and length, shape (time, longest).
        direction: ``"forward"`` or ``"backward"``.
        longest: The number of tokens of the longest n-gram.
        further: Where further sequences begin that stand beside the first; no n-gram is of two.
        without: The numbers of the sequences that do not have this direction.
    """
    time, held = len(band), min(longest, band.shape[1])
    values = by_first(band, direction == "backward")
    wide, tall = min(2 * time, _WIDE), min(held, _TALL)
    largest = torch.full((tall * wide,), -torch.inf, dtype=torch.float64, device="cpu")
    least = torch.full_like(largest, torch.inf)
    starts = torch.arange(time, device="cpu")
    sequence = torch.bucketize(starts, torch.tensor(further, dtype=torch.int64, device="cpu"), right=True)
    there = ~torch.isin(sequence, torch.tensor(without, dtype=torch.int64, device="cpu"))
    for k in range(held):
        of_one = there[: time - k] & (sequence[: time - k] == sequence[k:])
        row, first = k * tall // held * wide, starts[: time - k][of_one]
        for half in (0, 1):  # a cell is two half tokens wide
            places = row + (2 * first + k + half) * wide // (2 * time)
            largest.scatter_reduce_(0, places, values[first, k], "amax")
            least.scatter_reduce_(0, places, values[first, k], "amin")
    found = torch.where(largest.abs() >= least.abs(), largest, least)
    found[largest == -torch.inf] = torch.nan
    return found.reshape(tall, wide).numpy()
