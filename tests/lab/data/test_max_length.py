"""Texts that are longer than asked for: cut, left out or refused, and counted."""

from __future__ import annotations

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import (
    Brackets,
    Candidate,
    Classification,
    Example,
    Question,
    Relations,
    Selection,
    SentencePair,
    Stream,
    TaggedSentence,
    Tagging,
    Translation,
    Words,
)
from unrolled.lab.data.max_length import limit_length


def corpus(kind, long, short, **more):
    return kind(name="told", train=(short, long, short), dev=(short,), test=(long, short), **more)


LABELS = {"labels": ("a", "b")}
LONG, SHORT = Example(tuple("abcdefg"), 1), Example(("a",), 0)


def test_a_longer_text_is_cut_left_out_or_refused():
    whole = corpus(Classification, LONG, SHORT, **LABELS)
    cut = limit_length(whole, 3, "cut")
    assert (cut.train[1], cut.test[0]) == (Example(tuple("abc"), 1), Example(tuple("abc"), 1))
    assert cut.notes == ("told: cut, since they have a text longer than 3 tokens: 1 of train, 1 of test",)
    skipped = limit_length(whole, 3, "skip")
    assert (skipped.train, skipped.test) == ((SHORT, SHORT), (SHORT,))
    with pytest.raises(
        DataError, match=r"told, train: 1 of 3 examples have a text longer than 3 tokens.*example 2 with 7"
    ):
        limit_length(whole, 3, "refuse")
    assert limit_length(whole, 7, "refuse") is whole


def test_a_split_without_a_short_enough_text_is_refused():
    with pytest.raises(DataError, match="no dev example has at most 3 tokens"):
        limit_length(Classification(name="told", train=(SHORT,), dev=(LONG,), test=(SHORT,), **LABELS), 3, "skip")


@pytest.mark.parametrize(
    ("kind", "long", "expected", "more"),
    [
        (Translation, SentencePair(tuple("abcde"), tuple("xy")), SentencePair(tuple("abc"), tuple("xy")), {}),
        (
            Tagging,
            TaggedSentence(tuple("abcde"), ("O", "B-X", "I-X", "E-X", "O")),
            TaggedSentence(tuple("abc"), ("O", "O", "O")),
            {"spans": True},
        ),
        (
            Tagging,
            TaggedSentence(tuple("abcde"), ("B-X", "E-X", "S-Y", "O", "O")),
            TaggedSentence(tuple("abc"), ("B-X", "E-X", "S-Y")),
            {"spans": True},
        ),
        (
            Selection,
            Question(tuple("ab"), (Candidate(tuple("abcde"), True),)),
            Question(tuple("ab"), (Candidate(tuple("abc"), True),)),
            {},
        ),
    ],
)
def test_every_kind_of_example_is_cut_to_an_example(kind, long, expected, more):
    short = long
    assert limit_length(corpus(kind, long, short, **more), 3, "cut").train[1] == expected


def test_what_cannot_be_cut_says_so():
    marked = Example(("<e1>", "a", "</e1>", "of", "<e2>", "b", "</e2>"), 0)
    with pytest.raises(UsageError, match="would lose an entity if it were cut to 4"):
        limit_length(corpus(Relations, marked, marked, **LABELS), 4, "cut")
    with pytest.raises(UsageError, match="a string of brackets cannot be cut"):
        limit_length(corpus(Brackets, (0, 1), (0, 1), kinds=1, depth=1), 1, "cut")
    stream = Stream(lambda: iter(()))
    with pytest.raises(UsageError, match="running text is read in windows"):
        limit_length(Words(name="told", train=stream, dev=stream, test=stream), 3, "cut")
