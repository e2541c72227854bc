from __future__ import annotations

import unicodedata

import pytest

from unrolled.report.formatting import brief, clip, magnitude, minus, share_of, signed, visible


def test_nothing_hostile_survives_and_nothing_is_dropped(hostile):
    shown = visible(hostile)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown) >= len(hostile)
    assert shown.strip()
    shown.encode()


@pytest.mark.parametrize(
    "token",
    ["film", "n't", "été", "日本語", "שלום", "👩\u200d👩\u200d👧", "می\u200cخواهم", "a b", "<b>", "[red]"],
)
def test_ordinary_text_stays_as_it_is(token):
    assert visible(token) == token


def test_two_different_tokens_stay_different():
    assert len({visible(t) for t in ("", " ", "  ", "\u200d", "\u2028", "\n", "\x1b", "\x00")}) == 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.25, "+1.250"),
        (-1.5, "-1.500"),
        (-3.14e-9, "-3.1e-09"),
        (99999.5, "+99999.500"),
        (-421797.28, "-421797"),
        (2.5e7, "+25000000"),
        (2.5e12, "+2.5e+12"),
    ],
)
def test_numbers_bear_their_sign(value, text):
    assert signed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.004, "0"),
        (-0.25, "-0.25"),
        (99.994, "+99.99"),
        (-1234.5, "-1234"),
        (-421797.28, "-421797"),
        (999999.7, "+1e+06"),
        (2e6, "+2e+06"),
        (-1e100, "-1e+100"),
    ],
)
def test_a_cell_holds_a_brief_number(value, text):
    assert brief(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (-0.0134, 0.03, "-0.013"),
        (-0.0134, 0.4, "-0.01"),
        (0.00123, 0.002, "+0.0012"),
        (1.2e-7, 2e-7, "+1e-07"),
        (1.2e-9, 2e-7, "0"),
        (0.5, 0.0, "+0.50"),
    ],
)
def test_small_company_asks_for_more_decimals(value, limit, text):
    assert brief(value, limit) == text
    assert len(text) <= 7


def test_sizes_minus_and_clip():
    assert (magnitude(0.0), magnitude(3.14e-9), magnitude(0.01234)) == ("0", "3.1e-09", "0.012")
    assert minus("-3.1e-09") == "−3.1e−09"
    assert (clip("abc", 3), clip("abcd", 3)) == ("abc", "ab…")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0"),
        (0.012, "0.012 of it"),
        (1.0, "1 times it"),
        (1.84, "1.8 times it"),
        (float("inf"), "infinitely many times it"),
    ],
)
def test_a_part_is_compared_with_its_whole(share, text):
    assert share_of(share, "it") == text
