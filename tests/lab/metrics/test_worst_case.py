from __future__ import annotations

import pytest
import torch

from unrolled.errors import ShapeError
from unrolled.lab.metrics.worst_case import CONFIDENT, accuracy_by_distance, group_distances


def logits_of(*probabilities):
    """Logits of two kinds, the first with these probabilities."""
    first = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack((first, 1 - first), dim=-1).log()


def test_the_accuracy_is_taken_at_each_distance_and_the_worst_counts():
    logits = logits_of(0.9, 0.1, 0.9, 0.9, 0.9, 0.1)
    closing = torch.tensor([0, 1, 0, 1, 0, 0])
    distances = torch.tensor([1, 1, 1, 7, 7, 3])
    assert accuracy_by_distance(logits, closing, distances) == {1: 1.0, 3: 0.0, 7: 0.5}
    assert min(accuracy_by_distance(logits, closing, distances).values()) == 0.0
    # control: without the distance that is always wrong, the next worst counts; the mean is a different number
    kept = distances != 3
    assert min(accuracy_by_distance(logits[kept], closing[kept], distances[kept]).values()) == 0.5


def test_correct_is_at_least_four_fifths_not_merely_the_most():
    closing, distances = torch.tensor([0, 0]), torch.tensor([1, 2])
    assert accuracy_by_distance(logits_of(0.79, 0.81), closing, distances) == {1: 0.0, 2: 1.0}


def test_four_fifths_themselves_are_enough_as_published():
    logits = torch.tensor([[4.0, 1.0]], dtype=torch.float64).log()
    assert logits.softmax(-1)[0, 0] == CONFIDENT  # not above it by rounding
    assert accuracy_by_distance(logits, torch.tensor([0]), torch.tensor([1])) == {1: 1.0}


@pytest.mark.parametrize(
    ("logits", "closing", "distances"),
    [
        (torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), torch.zeros(2, dtype=torch.long)),
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.long)),
        (torch.zeros(3), torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.long)),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
    ],
)
def test_predictions_that_do_not_belong_together(logits, closing, distances):
    with pytest.raises(ShapeError, match="expected \\(n, k\\), \\(n,\\) and \\(n,\\) with n at least 1"):
        accuracy_by_distance(logits, closing, distances)


def test_ranges_end_at_powers_of_two_and_hold_every_distance_once():
    shares = {distance: 1 / distance for distance in range(1, 200, 2)}
    ranges = group_distances(dict(reversed(shares.items())))
    assert [(each.first, each.last) for each in ranges] == [
        (1, 1), (3, 3), (5, 7), (9, 15), (17, 31), (33, 63), (65, 127), (129, 199)
    ]  # fmt: skip
    assert min(each.least for each in ranges) == min(shares.values())
    for each in ranges:
        inside = [share for distance, share in shares.items() if each.first <= distance <= each.last]
        assert each.mean == pytest.approx(sum(inside) / len(inside))
        assert each.least == min(inside)
    assert group_distances({3: 0.5, 40: 0.25}) == [(3, 3, 0.5, 0.5), (40, 40, 0.25, 0.25)]
