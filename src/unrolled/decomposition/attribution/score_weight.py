"""The weight of the scores: how a target reads each number of a state where it reads it most."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["score_weight"]

_EQUAL_MAGNITUDES = 1e-5
"""Magnitudes that differ by less, relative to the largest, are taken as equal: rounding tells nothing."""


def score_weight(weights: Tensor) -> Tensor:
    r"""Return for each number of a state its weight of largest magnitude, at the last of several such positions.

    .. math:: r_k = w_{t^* k}, \qquad t^* = \max \{t : |w_{tk}| = \max_s |w_{sk}|\}

    Args:
        weights: w_t in the direction's own order, zero outside the sequences, shape (time, ..., state).

    Returns:
        r, shape (..., state).
    """
    sizes = weights.abs()
    largest = sizes >= (1 - _EQUAL_MAGNITUDES) * sizes.amax(dim=0)
    places = torch.arange(len(weights), device=weights.device).view(-1, *[1] * (weights.dim() - 1))
    last = torch.where(largest, places, 0).amax(dim=0)
    return weights.gather(0, last[None])[0]
