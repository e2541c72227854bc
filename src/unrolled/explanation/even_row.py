"""Fill in places that are not known: the steps of a sequence are evenly spaced in its argument."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["even_row"]


def even_row(places: Tensor) -> Tensor | None:
    """Return evenly spaced rows through those that are known; None if these are fewer than two, or uneven.

    Args:
        places: Shape (rows, numbers); rows of -1 are not known.
    """
    known = (places[:, 0] >= 0).nonzero()[:, 0]
    if len(known) < 2:
        return None
    first, rows = known[0], torch.arange(len(places), device=places.device)[:, None]
    slope = (places[known[1]] - places[first]).div(known[1] - first, rounding_mode="floor")
    even = places[first] + slope * (rows - first)
    return even if torch.equal(even[known], places[known]) else None
