"""A corpus in a few words, of every kind there is."""

from __future__ import annotations

import pytest

from unrolled.lab.data.corpus import (
    Brackets,
    Candidate,
    Characters,
    Classification,
    Example,
    Question,
    RatedText,
    Regression,
    Relations,
    Selection,
    SentencePair,
    Stream,
    TaggedSentence,
    Tagging,
    Translation,
    Words,
)
from unrolled.lab.data.summary import show_example, split_sizes


def corpus(kind, split, **more):
    return kind(name="c", train=split, dev=split, test=split, **more)


LETTERS = Stream(lambda: iter(["\n", "ab\n", "c\n"]))
LINES = Stream(lambda: iter([["<eos>"], ["a", "b", "<eos>"]]))
SPELLED = Stream(lambda: iter([["a", "_", "b", "<eos>"]]))
WRONG, RIGHT = (Candidate(("no",), False), Candidate(("yes", "!"), True))
ASKED = (Question(("why", "?"), (WRONG,)), Question(("who", "?"), (WRONG, RIGHT)))


@pytest.mark.parametrize(
    ("made", "size", "shown"),
    [
        (corpus(Words, LINES), (4, "words", "2 lines"), "a b <eos>"),
        (corpus(Characters, LETTERS), (6, "characters", "3 lines"), "ab\nc"),
        (corpus(Characters, SPELLED), (4, "characters", "1 lines"), "a _ b <eos>"),
        (
            corpus(Tagging, (TaggedSentence(("a", "b"), ("O", "S-X")),), spans=True),
            (1, "sentences", "2 tokens"),
            "a/O b/S-X",
        ),
        (corpus(Translation, (SentencePair(("a",), ("b", "c")),)), (1, "pairs", "1 words in 2"), "a\nb c"),
        (corpus(Selection, ASKED), (2, "questions", "1 with a right answer, 3 candidates"), "who ?\nyes !"),
        (corpus(Brackets, ((0, 1), (0, 0, 1, 1)), kinds=1, depth=2), (2, "strings", "8 symbols with the ends"), "0 1"),
        (corpus(Regression, (RatedText(("a", "b"), 1.5),)), (1, "texts", "2 tokens"), "a b\n1.5"),
        (
            corpus(Classification, (Example(("a",), 1), Example(("b",), 1)), labels=("bad", "good")),
            (2, "texts", "0 bad, 2 good"),
            "a\ngood",
        ),
        (corpus(Relations, (Example(("a",), 0),), labels=tuple("abcdef")), (1, "texts", "6 classes"), "a\na"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_is_counted_in_its_own_way_and_shown(made, size, shown):
    assert [(each.split, each.count, each.what, each.details) for each in split_sizes(made)] == [
        (split, *size) for split in ("train", "dev", "test")
    ]
    assert show_example(made) == shown
