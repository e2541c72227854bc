"""The worst case, not the mean: how often a closing bracket is predicted, at each distance from its opening one.

Most distances in a string are short, so a model that forgets is right nearly always on average, and wrong where it
is far. WCPA is the smallest of the shares.

Source:
    Second-order RNNs, section 5.2, after Hewitt et al. (2020), arXiv:2010.07515.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ShapeError

__all__ = ["CONFIDENT", "DistanceRange", "accuracy_by_distance", "group_distances", "worst_case_accuracy"]

CONFIDENT = 0.8
"""What a prediction must give to the right bracket, of the probability of all closing ones, and exceed."""


def accuracy_by_distance(logits: Tensor, closing: Tensor, distances: Tensor) -> dict[int, float]:
    """Count how often the right bracket gets more than 0.8 of the probability of all closing brackets.

    Args:
        logits: of the closing brackets alone, shape (predictions, k).
        closing: the kind that is right, shape (predictions,).
        distances: from the bracket that is closed to the one that closes it, shape (predictions,).

    Returns:
        The share that is right, for each distance that occurs, in ascending order.

    Raises:
        ShapeError: when the three do not speak of the same predictions, or of none.
    """
    if logits.dim() != 2 or not len(logits) or not closing.shape == distances.shape == logits.shape[:1]:
        raise ShapeError(
            f"logits, closing and distances have shapes {tuple(logits.shape)}, {tuple(closing.shape)} and "
            f"{tuple(distances.shape)}; expected (n, k), (n,) and (n,) with n at least 1"
        )
    right = logits.softmax(-1).gather(1, closing[:, None])[:, 0] > CONFIDENT
    seen, place, count = distances.unique(return_inverse=True, return_counts=True)
    shares = (
        torch.zeros(len(seen), dtype=torch.float64, device=logits.device).index_add(0, place, right.double()) / count
    )
    return dict(zip(seen.tolist(), shares.tolist(), strict=True))


class DistanceRange(NamedTuple):
    """The accuracy of neighbouring distances."""

    first: int
    last: int
    mean: float
    """Each distance weighs the same."""
    least: float


def group_distances(shares: Mapping[int, float]) -> list[DistanceRange]:
    """Gather distances into ranges, each twice as long as the one before it.

    Args:
        shares: as :func:`accuracy_by_distance` gives them.

    Returns:
        The ranges from the nearest, cut at the powers of two, without those in which no distance occurs.

    Example:
        >>> group_distances({1: 1.0, 5: 0.75, 7: 0.25})
        [DistanceRange(first=1, last=1, mean=1.0, least=1.0), DistanceRange(first=5, last=7, mean=0.5, least=0.25)]
    """
    ranges = []
    for _, group in groupby(sorted(shares), key=int.bit_length):
        distances = list(group)
        found = [shares[distance] for distance in distances]
        ranges.append(DistanceRange(distances[0], distances[-1], sum(found) / len(found), min(found)))
    return ranges


def worst_case_accuracy(logits: Tensor, closing: Tensor, distances: Tensor) -> float:
    """Give the accuracy at the distance where it is smallest: WCPA.

    Args:
        logits: of the closing brackets alone, shape (predictions, k).
        closing: the kind that is right, shape (predictions,).
        distances: from the bracket that is closed to the one that closes it, shape (predictions,).

    Returns:
        The smallest of :func:`accuracy_by_distance`, from 0 to 1.
    """
    return min(accuracy_by_distance(logits, closing, distances).values())
