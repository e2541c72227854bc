"""Files of dev and test are read with the columns of the training."""

import json

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Regression
from unrolled.lab.data.formats import read_files

REVIEWS = [
    (f"of all the films of this year number {k} is a {'fine' if k % 3 else 'dull'} one", "good" if k % 3 else "bad")
    for k in range(20)
]


def write(path, names, rows):
    """Write a table with a header, or JSON lines, as the suffix says."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        lines = [",".join(map(str, row)) for row in (names, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_file_of_one_class_is_read_by_the_column_of_the_trainings_labels(tmp_path, suffix, split):
    rows = [(text, label, f"page {number}") for number, (text, label) in enumerate(REVIEWS)]
    train = write(tmp_path / f"train.{suffix}", ("review", "sentiment", "source"), rows)
    others = [(text, "good", ("good", "bad")[number % 2]) for number, (text, _) in enumerate(REVIEWS)]
    other = write(tmp_path / f"other.{suffix}", ("review", "sentiment", "source"), others)
    corpus = read_files(Classification, [train], **{split: [other]})
    assert {corpus.labels[each.label] for each in getattr(corpus, split)} == {"good"}
    assert f"{other}: texts from 'review', labels from 'sentiment'" in corpus.notes
    alone = read_files(Classification, [other])  # without a training beside it, what the columns hold decides
    assert f"{other}: texts from 'review', labels from 'source'" in alone.notes


def test_a_rating_is_read_by_the_column_of_the_trainings_ratings(tmp_path):
    rows = [(text, number % 3, f"u{number}") for number, (text, _) in enumerate(REVIEWS)]
    train = write(tmp_path / "train.csv", ("review", "points", "user"), rows)
    others = [(text, number % 3, number * 7 % 5) for number, (text, _) in enumerate(REVIEWS)]
    test = write(tmp_path / "test.csv", ("review", "points", "user"), others)
    corpus = read_files(Regression, [train], test=[test])
    assert [each.rating for each in corpus.test] == [number % 3 for number in range(len(others))]
    with pytest.raises(DataError, match="cannot tell which column holds the labels"):
        read_files(Regression, [test])


def test_a_file_with_other_names_is_read_by_what_it_holds(tmp_path):
    rows = [(text, label, f"page {number}") for number, (text, label) in enumerate(REVIEWS)]
    train = write(tmp_path / "train.csv", ("review", "sentiment", "source"), rows)
    test = write(tmp_path / "test.csv", ("class", "sentence"), [(label, text) for text, label in REVIEWS])
    corpus = read_files(Classification, [train], test=[test])
    assert [corpus.labels[each.label] for each in corpus.test] == [label for _, label in REVIEWS]
