from __future__ import annotations

import pytest

from unrolled.lab.data.word_features import SHAPES, word_shape


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("lower", ("of", "o'clock", "day-to-day", "größe")),
        ("Capital", ("Ms.", "Peter", "O'clock", "Ärger")),
        ("UPPER", ("EU", "U.S.", "I", "ÖBB")),
        ("miXed", ("McDonald", "iPhone", "al-Assad")),
        ("1985", ("3,000", "1996-08-22", "7")),
        ("b4", ("b4", "22-year-old", "MI5")),
        (".", ("-", "''", "…")),
    ],
)
def test_shapes(shape, words):
    assert {SHAPES[word_shape(word)] for word in words} == {shape}


def test_no_word_has_the_shape_of_padding():
    assert all(word_shape(sign) > 0 for sign in map(chr, range(32, 0x500)))
