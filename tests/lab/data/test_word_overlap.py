from __future__ import annotations

import json
import math

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.word_features import WordOverlap

SENTENCES = (("the", "cat", "sat"), ("The", "dog", "the"), ("a", "cat"))


def test_each_sentence_counts_a_word_once_whatever_its_case():
    overlap = WordOverlap.from_sentences(SENTENCES)
    assert overlap.sentences == 3
    assert overlap.counts == {"the": 2, "cat": 2, "sat": 1, "dog": 1, "a": 1}


def test_the_three_numbers_by_hand():
    overlap = WordOverlap.from_sentences(SENTENCES)
    share, weighed, length = overlap.features(
        ("Where", "is", "the", "cat", "the"), ("THE", "cat", "on", "the", "mat", ".")
    )
    the, unseen = math.log(4 / 3), math.log(4)
    assert share == pytest.approx(2 / 4)
    assert weighed == pytest.approx(2 * the / (2 * the + 2 * unseen))
    assert length == pytest.approx(math.log(6))


def test_rare_words_weigh_more():
    overlap = WordOverlap.from_sentences(SENTENCES)
    question = ("the", "dog", "barks")
    shares = [overlap.features(question, (word,)) for word in question]
    assert len({share for share, _, _ in shares}) == 1
    assert sorted(weighed for _, weighed, _ in shares) == [weighed for _, weighed, _ in shares]


def test_words_that_are_everywhere_are_worth_nothing():
    overlap = WordOverlap.from_sentences([("the",), ("the",)])
    assert overlap.features(("the",), ("the",)) == (1.0, 0.0, 0.0)


def test_a_record_makes_it_again():
    overlap = WordOverlap.from_sentences(SENTENCES)
    assert WordOverlap.from_record(json.loads(json.dumps(overlap.to_record()))) == overlap


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"sentences": 3},
        {"sentences": "3", "counts": {}},
        {"sentences": 3, "counts": {"a": 4}},
        {"sentences": 3, "counts": {"a": 0}},
        {"sentences": 3, "counts": {"a": 1.5}},
        {"sentences": 3, "counts": ["a"]},
    ],
)
def test_records_that_were_touched_are_refused(record):
    with pytest.raises(DataError, match='expected "sentences" and the "counts" of words in them'):
        WordOverlap.from_record(record)
