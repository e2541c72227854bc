from __future__ import annotations

import math

import pytest
import torch

from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import NonFiniteError, UsageError
from unrolled.report.colour import (
    DARK_SCALE,
    SCALE,
    STEPS,
    colour,
    luminance,
    scale_index,
    shared_limit,
    text_colour,
)
from unrolled.report.spans import values_of


def channels(hexadecimal: str) -> list[int]:
    return [int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5)]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("limit", [0.0, 1e-9, 1.0, 1e12])
def test_zero_is_the_middle_whatever_the_limit(limit):
    assert scale_index(0.0, limit) == STEPS == len(SCALE) // 2
    assert len(SCALE) % 2 == 1


def test_zero_is_the_palest_and_has_no_hue():
    assert max(SCALE, key=luminance) == SCALE[STEPS]
    assert max(channels(SCALE[STEPS])) - min(channels(SCALE[STEPS])) <= 2


def test_a_value_and_its_negative_lie_mirrored_and_equally_dark():
    for k in range(STEPS + 1):
        assert scale_index(-k / STEPS, 1.0) == 2 * STEPS - scale_index(k / STEPS, 1.0)
        assert luminance(SCALE[STEPS - k]) == pytest.approx(luminance(SCALE[STEPS + k]), abs=0.02)


def test_each_arm_darkens_towards_its_end():
    light = [luminance(c) for c in SCALE]
    assert light[: STEPS + 1] == sorted(light[: STEPS + 1])
    assert light[STEPS:] == sorted(light[STEPS:], reverse=True)


def test_blue_is_positive_and_orange_negative():
    for k in range(8, STEPS + 1):
        red, _, blue = channels(SCALE[STEPS + k])
        assert blue > red
        red, _, blue = channels(SCALE[STEPS - k])
        assert red > blue


def test_beyond_the_limit_a_value_takes_the_end():
    assert colour(9.0, 2.0) == colour(2.0, 2.0) == SCALE[-1]
    assert colour(-9.0, 2.0) == SCALE[0]
    assert colour(1.0, 2.0) not in (SCALE[-1], SCALE[STEPS])


@pytest.mark.parametrize("scale", [SCALE, DARK_SCALE])
def test_text_is_legible_on_every_colour(scale):
    assert min(contrast(c, text_colour(c)) for c in scale) > 4.5


def test_on_a_dark_page_zero_is_dark_and_each_arm_lightens():
    light = [luminance(c) for c in DARK_SCALE]
    assert light[STEPS] < 0.03
    assert light[: STEPS + 1] == sorted(light[: STEPS + 1], reverse=True)
    assert light[STEPS:] == sorted(light[STEPS:])
    for k in range(STEPS + 1):
        assert light[STEPS - k] == pytest.approx(light[STEPS + k], abs=0.04)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_colour(value):
    with pytest.raises(NonFiniteError, match="finite"):
        scale_index(value, 1.0)


@pytest.mark.parametrize("limit", [-1.0, math.nan, math.inf])
def test_a_limit_must_be_a_size(limit):
    with pytest.raises(UsageError, match="limit"):
        scale_index(0.0, limit)


@pytest.mark.parametrize("quantity", ["phrase", "score", "contribution", "token"])
def test_the_limit_covers_all_that_is_shown_and_not_much_more(build, quantity):
    attribution = build(mean=True)
    shown = attribution.token_scores if quantity == "token" else values_of(attribution, quantity)
    largest = float(shown.abs().max())
    assert largest <= shared_limit([attribution], quantity) <= 1.34 * largest


def test_exact_accounts_set_the_limit(build):
    exact, wild = build(), build(exact=False, scale=100.0)
    assert shared_limit([exact, wild]) == shared_limit([exact])
    assert shared_limit([wild]) > 50 * shared_limit([exact])


def test_an_account_of_nothing_has_the_limit_zero(build):
    assert shared_limit([build(scale=0.0)]) == 0.0


def test_no_account_and_no_number_are_refused(build):
    with pytest.raises(UsageError, match="no explanation"):
        shared_limit([])
    broken = torch.full((1, 4, 4), math.nan, dtype=torch.float64)
    with pytest.raises(NonFiniteError, match="path"):
        shared_limit([build(triangle=Triangle(broken, broken))])
