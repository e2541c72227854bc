"""A slope of another function than the one whose rise is known is averaged, without cuts that cannot help."""

from __future__ import annotations

import pytest
import torch

from unrolled.linalg.adaptive_quadrature import Jump, partition

PIECES = 256
KINKS = torch.tensor([0.13, 0.5, 0.77], dtype=torch.float64)


def kinks(a):
    return (a[:, None] - KINKS).clamp_min(0).sum(1)


def kink_slopes(a):
    return (a[:, None] > KINKS).double().sum(1)


SEEN = {
    "linear": (lambda a: 2 * a, lambda a: torch.full_like(a, 2.0)),
    "smooth": (lambda a: torch.sin(7 * a), lambda a: 7 * torch.cos(7 * a)),
    "kinks": (kinks, kink_slopes),
}
UNSEEN = {
    "smooth": lambda a: torch.sin(2 * a),
    "after a third": lambda a: (3 * a - 1).clamp_min(0),
}


def averaged(value, slope):
    """What the nodes make of the slope, and how many places were looked at."""
    looks = 0

    def look(a):
        nonlocal looks
        looks += 1
        return value(a), slope(a)

    rounds = partition(look, 1, torch.ones(1, dtype=torch.float64), 1e-13, PIECES)
    return float(sum(w * slope(a) for a, w in rounds)), looks


@pytest.mark.parametrize("unseen", ["smooth", "after a third"])
@pytest.mark.parametrize("seen", SEEN)
def test_it_is_averaged_as_if_its_function_were_known(seen, unseen):
    value, slope = SEEN[seen]
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    rise = float(value(ends).diff())
    total, looks = averaged(lambda a: value(a) + UNSEEN[unseen](a), slope)
    assert total == pytest.approx(rise, abs=1e-12 if seen != "kinks" else 1e-8)
    assert looks < (0.8 if seen == "kinks" else 0.3) * 11 * PIECES  # a cut takes 11 looks
    known, fewer = averaged(value, slope)  # the control: nothing is unseen
    assert known == pytest.approx(rise, abs=1e-12)
    assert fewer < looks


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_steps_are_no_slope_of_another_function(steps):
    with pytest.raises(Jump):
        averaged(lambda a: a + torch.floor(steps * a + 0.3), torch.ones_like)


@pytest.mark.parametrize("size", [0.1, 1.0, -1.0])
@pytest.mark.parametrize("unseen", ["smooth", "after a third"])
def test_a_jump_beside_what_is_unseen_is_found(size, unseen):
    with pytest.raises(Jump):
        averaged(lambda a: a + UNSEEN[unseen](a) + size * (a > 0.41), torch.ones_like)


@pytest.mark.parametrize("steepness", [1e2, 1e4, 1e6])
def test_a_steep_rise_beside_what_is_unseen_is_averaged(steepness):
    """The slope is zero at every node of the first cuts: only the values tell where it is not."""

    def value(a):
        return torch.sigmoid(steepness * (a - 0.37))

    def slope(a):
        return steepness * value(a) * (1 - value(a))

    total, _ = averaged(lambda a: value(a) + torch.sin(2 * a), slope)
    assert total == pytest.approx(1.0, abs=1e-8)
