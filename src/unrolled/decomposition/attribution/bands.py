"""Bands: one number of every n-gram, by the position where it is read and by its length.

A band has shape (…, time, longest). ``band[…, t, k]`` belongs to the n-gram of k + 1 tokens that is read at token t: it
enters at token t - k forward, at token t + k backward, and is zero where the text has no such token. A band of all
lengths is as large as a matrix of positions read and entered; one of a few lengths has a few numbers for each token.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["by_entered", "by_first", "default_longest", "kept_steps", "put_terms", "to_matrix"]

FULL = 2**26
"""The most numbers for which all n-grams of a text are told apart, if nobody asked for a length."""
LIMITED = 2**23
"""About as many numbers are kept of a longer text."""


def default_longest(time: int, bands: int) -> int | None:
    """Return the length of the longest n-grams that are told apart if nobody asked for one; None for all.

    Args:
        time: Number of tokens of the longest text.
        bands: Number of bands that are kept of a text.
    """
    if time * time * bands <= FULL:
        return None
    return max(1, min(time, LIMITED // (time * bands)))


def put_terms(band: Tensor, time: int, values: Tensor) -> None:
    """Add the values of the n-grams that end at a step, the longest first, shape (…, count), to a band of steps."""
    band[..., time, : values.shape[-1]] += values.flip(-1)


def by_entered(bands: Tensor) -> Tensor:
    """Sum the bands of all directions by the token where n-grams enter: (…, directions, time, longest) to (…, time)."""
    ways, time, longest = bands.shape[-3:]
    total = bands.new_zeros(*bands.shape[:-3], time)
    for k in range(min(longest, time)):
        total[..., : time - k] += bands[..., 0, k:, k]
        if ways == 2:
            total[..., k:] += bands[..., 1, : time - k, k]
    return total


def by_first(band: Tensor, backward: bool) -> Tensor:
    """Move the numbers of a band from the token that is read to the first token of the n-gram, the same shape."""
    moved, time = torch.zeros_like(band), band.shape[-2]
    for k in range(min(band.shape[-1], time)):
        moved[..., : time - k, k] = band[..., : time - k, k] if backward else band[..., k:, k]
    return moved


def to_matrix(band: Tensor, backward: bool) -> Tensor:
    """Lay a band out by position read and position entered, shape (…, time, time)."""
    time = band.shape[-2]
    matrix = band.new_zeros(*band.shape[:-1], time)
    for k in range(min(band.shape[-1], time)):
        places = matrix.diagonal(k if backward else -k, -2, -1)
        places.copy_(band[..., : time - k, k] if backward else band[..., k:, k])
    return matrix


def kept_steps(bands: Tensor, places: Tensor) -> Tensor:
    """Keep some steps of the bands of one or two directions, shape (directions, steps, longest), in order.

    Of two directions the steps that are kept are the first ones. Of one they may have gaps: an n-gram is then as long
    as the steps of it that are kept.
    """
    count = len(places)
    if torch.equal(places, torch.arange(count, device="cpu")):
        return bands[:, :count, :count]
    longest = min(bands.shape[-1], count)
    entered = torch.arange(count, device="cpu")[:, None] - torch.arange(longest, device="cpu")
    further = places[:, None] - places[entered.clamp_min(0)]
    found = bands[:, places[:, None], further.clamp_max(bands.shape[-1] - 1)]
    return torch.where((entered >= 0) & (further < bands.shape[-1]), found, 0.0)
