"""Polar adjectives: the ratio, the lexicon, and the paper's own list."""

from __future__ import annotations

import warnings

import pytest

from unrolled.lab.data.corpus import Example, RatedText
from unrolled.lab.papers.analyses.sentences import polar_adjectives as module
from unrolled.lab.papers.analyses.sentences.polar_adjectives import (
    PAPER_ADJECTIVES,
    PAPER_COUNTS,
    adjective_polarities,
    polar_adjectives,
    rating_signs,
)

pytest.importorskip("textblob", reason="adjectives need the extra [figures]")


def texts(*counted):
    """Make a text of one word for each time that it is to occur."""
    return [
        Example((word,), label) for word, bad, good in counted for label, n in ((0, bad), (1, good)) for _ in range(n)
    ]


def test_a_word_is_polar_beyond_the_ratio_and_only_if_the_lexicon_agrees():
    found = polar_adjectives(
        texts(
            ("good", 1, 4),  # four times as often
            ("nice", 1, 3),  # three times: not above
            ("Superb", 0, 2),  # never negative; case is ignored
            ("bad", 7, 2),
            ("awful", 3, 1),  # a third: not below
            ("terrible", 0, 5),  # of the other polarity than its texts
            ("film", 0, 9),  # no adjective
            ("love", 0, 9),  # polar, but no adjective of the lexicon
        )
    )
    assert found.positive == ("good", "superb")  # the frequent first
    assert found.negative == ("bad",)
    assert found.all == ("good", "superb", "bad")


def test_a_smaller_ratio_lets_more_words_in():
    rare = texts(("good", 2, 4), ("bad", 4, 2))
    assert polar_adjectives(rare).all == ()
    assert polar_adjectives(rare, ratio=1.5).all == ("good", "bad")


def test_the_lexicon_is_read_as_textblob_reads_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of textblob's and nltk's own
        from textblob.en import sentiment

        sentiment.load()
    theirs = {word: tags["JJ"][0] for word, tags in sentiment.items() if "JJ" in tags}
    ours = adjective_polarities()
    assert ours.keys() == theirs.keys()
    assert len(ours) > 1000
    assert all(ours[word] == pytest.approx(theirs[word], abs=1e-12) for word in ours)


def test_the_printed_adjectives_are_those_of_table_9_and_of_the_lexicon():
    assert (len(PAPER_ADJECTIVES.positive), len(PAPER_ADJECTIVES.negative)) == (37, 31)
    assert PAPER_COUNTS == {"positive": 73, "negative": 47}
    assert len(set(PAPER_ADJECTIVES.all)) == 68
    lexicon = adjective_polarities()
    assert all(lexicon[word] > 0 for word in PAPER_ADJECTIVES.positive)
    assert all(lexicon[word] < 0 for word in PAPER_ADJECTIVES.negative)


def test_ratings_are_told_by_their_sign():
    rated = [RatedText(("a",), 0.5), RatedText(("b",), 0.0), RatedText(("c",), -2.0)]
    assert list(rating_signs(rated)) == [Example(("a",), 1), Example(("c",), 0)]


def test_without_textblob_the_error_names_the_extra(monkeypatch):
    adjective_polarities.cache_clear()
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"unrolled\[figures\]"):
        polar_adjectives([])


@pytest.mark.data
def test_the_phrases_of_sst2_hold_all_that_the_paper_prints_and_its_sentences_do_not(data_folder):
    from unrolled.lab.data.corpus import Classification
    from unrolled.lab.data.load import load_dataset

    found = polar_adjectives(load_dataset("sst2", Classification, data_folder).train)
    assert (len(found.positive), len(found.negative)) == (247, 217)
    assert set(PAPER_ADJECTIVES.positive) <= set(found.positive)
    assert set(PAPER_ADJECTIVES.negative) <= set(found.negative)
    fewer = polar_adjectives(load_dataset("sst2-sentences", Classification, data_folder).train)
    assert not set(PAPER_ADJECTIVES.positive) <= set(fewer.positive)
