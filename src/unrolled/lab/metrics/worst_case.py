"""The worst-case prediction accuracy (WCPA) of closing brackets over all distances to the opening bracket.

Most distances in a string are short, so a model that forgets is nearly always right on average and wrong at long
distances. WCPA is the smallest accuracy at any distance: the smallest value of :func:`accuracy_by_distance`.

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

__all__ = ["CONFIDENT", "DistanceRange", "accuracy_by_distance", "group_distances"]

CONFIDENT = 0.8
"""A prediction is correct if the right bracket gets at least this share of the probability of all closing ones."""


def accuracy_by_distance(logits: Tensor, closing: Tensor, distances: Tensor) -> dict[int, float]:
    """Compute the share of correct predictions at each distance.

    Args:
        logits: Logits of the closing brackets alone, shape (predictions, k).
        closing: The right kind of bracket, shape (predictions,).
        distances: The distance from each closing bracket to its opening bracket, shape (predictions,).

    Returns:
        The accuracy at each distance that occurs, in ascending order of distance.

    Raises:
        ShapeError: The shapes do not match, or there are no predictions.
    """
    if logits.dim() != 2 or not len(logits) or not closing.shape == distances.shape == logits.shape[:1]:
        raise ShapeError(
            f"logits, closing and distances have shapes {tuple(logits.shape)}, {tuple(closing.shape)} and "
            f"{tuple(distances.shape)}; expected (n, k), (n,) and (n,) with n at least 1"
        )
    correct = (logits.softmax(-1).gather(1, closing[:, None])[:, 0] >= CONFIDENT).double()
    seen, place, count = distances.unique(return_inverse=True, return_counts=True)
    accuracy = torch.zeros(len(seen), dtype=torch.float64, device=logits.device).index_add(0, place, correct) / count
    return dict(zip(seen.tolist(), accuracy.tolist(), strict=True))


class DistanceRange(NamedTuple):
    """The accuracy over a range of distances."""

    first: int
    last: int
    mean: float
    """The mean over distances, each with the same weight."""
    least: float


def group_distances(accuracies: Mapping[int, float]) -> list[DistanceRange]:
    """Group the result of :func:`accuracy_by_distance` into ranges that start at the powers of two.

    Example:
        >>> group_distances({1: 1.0, 5: 0.75, 7: 0.25})
        [DistanceRange(first=1, last=1, mean=1.0, least=1.0), DistanceRange(first=5, last=7, mean=0.5, least=0.25)]
    """
    ranges = []
    for _, group in groupby(sorted(accuracies), key=int.bit_length):
        distances = list(group)
        found = [accuracies[distance] for distance in distances]
        ranges.append(DistanceRange(distances[0], distances[-1], sum(found) / len(found), min(found)))
    return ranges
