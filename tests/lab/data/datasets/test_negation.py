from __future__ import annotations

from collections import Counter

import pytest

from unrolled.lab.data.datasets.negation import NEGATIVE, POSITIVE, NegationReviews


def phrase(example):
    """The polarity phrase: the adjective and every "not" in front of it."""
    begin = len(example.tokens) - 1
    while example.tokens[begin - 1] == "not":
        begin -= 1
    return " ".join(example.tokens[begin:])


@pytest.fixture(scope="module")
def dataset():
    return NegationReviews().read()


def test_the_sizes_and_balance_are_those_published(dataset):
    counts = [Counter(example.label for example in split) for split in (dataset.train, dataset.dev, dataset.test)]
    assert counts == [{0: 2060, 1: 2060}, {0: 100, 1: 100}, {0: 100, 1: 100}]
    assert (len(POSITIVE), len(NEGATIVE)) == (10, 12)
    assert dataset.labels == ("negative", "positive")


def test_no_sentence_occurs_twice_so_none_of_the_test_is_trained_on(dataset):
    sentences = [example.tokens for example in (*dataset.train, *dataset.dev, *dataset.test)]
    assert len(set(sentences)) == len(sentences) == 4520


def test_the_label_is_the_adjectives_polarity_turned_by_every_not(dataset):
    for example in (*dataset.train, *dataset.dev, *dataset.test):
        *nots, adjective = phrase(example).split()
        assert example.label == (adjective in POSITIVE) ^ (len(nots) % 2)
        assert (adjective in POSITIVE) != (adjective in NEGATIVE)
        assert example.tokens.count("not") == len(nots) <= 2


def test_all_66_phrases_are_trained_on_and_equally_often_within_their_kind(dataset):
    counts = Counter(map(phrase, dataset.train))
    assert len(counts) == 66
    for words in (POSITIVE, NEGATIVE):
        for prefix in ("", "not ", "not not "):
            times = [counts[prefix + word] for word in words]
            assert max(times) - min(times) <= 1
            assert sum(times) in (686, 687)


def test_what_surrounds_a_phrase_says_nothing_of_the_label(dataset):
    labels: dict[str, Counter[int]] = {}
    for example in dataset.train:
        for token in set(example.tokens[: -len(phrase(example).split())]):
            labels.setdefault(token, Counter())[example.label] += 1
    for counts in labels.values():
        assert 0.4 < counts[1] / counts.total() < 0.6


def test_without_double_negation_there_is_none_and_the_sizes_stay():
    dataset = NegationReviews(double_negation=False).read()
    assert {len(phrase(example).split()) for example in dataset.train} == {1, 2}
    assert Counter(example.label for example in dataset.train) == {0: 2060, 1: 2060}
    assert len(set(map(phrase, dataset.train))) == 44


def test_the_seed_decides_the_sentences(dataset):
    assert NegationReviews().read() == dataset
    assert NegationReviews(seed=1).read() != dataset
