"""A file that is given twice for one split is named: its examples count twice."""

from __future__ import annotations

from collections import Counter

import pytest

from unrolled.lab.data.corpus import Classification, Translation
from unrolled.lab.data.formats import read_files, read_split
from written_tables import review, save, table


@pytest.fixture
def reviews(tmp_path):
    def of(first):
        return table(("text", "label"), lambda n: (review(first + n), ("good", "bad")[n % 2]), 20)

    return [save(tmp_path, name, of(first)) for name, first in (("one.csv", 0), ("two.csv", 20), ("three.csv", 40))]


def noted(corpus):
    return [each for each in corpus.notes if "times" in each]


def test_a_file_that_is_given_twice_is_named(reviews, tmp_path):
    one, two, three = reviews
    other = tmp_path / "other.csv"
    other.symlink_to(one)
    corpus = read_files(Classification, [one, two, other, one], [two], [three, three])
    assert noted(corpus) == [
        f"{one} is given 3 times; each of its examples counts 3 times",
        f"{three} is given 2 times; each of its examples counts 2 times",
    ]
    assert sorted(Counter(each.text for each in corpus.train).values()) == [1] * 20 + [3] * 20
    split = read_split(Classification, [two, two], corpus.labels)
    assert noted(split) == [f"{two} is given 2 times; each of its examples counts 2 times"]


def test_a_file_of_several_splits_is_given_once_for_each(reviews):
    one, two, three = reviews
    assert not noted(read_files(Classification, [one, two], [two], [three, two]))
    assert not noted(read_split(Classification, reviews, ("good", "bad")))


def test_a_file_on_both_sides_of_parallel_text_is_given_once(tmp_path):
    text = save(tmp_path, "copies.txt", "".join(f"line {n} is one of many\n" for n in range(20)))
    corpus = read_files(Translation, [text, text], [text, text], [text, text], format="parallel")
    assert len(corpus.train) == 20
    assert not noted(corpus)
    assert not noted(read_split(Translation, [text, text], (), format="parallel"))
