"""Files of dev and test are read with the columns of the training."""

import json
import re

import pytest

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Classification, Regression, Tagging
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.reading import Reading

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


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize(
    ("names", "row", "missing"),
    [
        (("review",), lambda k: REVIEWS[k][:1], "labels from 'mood'"),
        (("review", "day"), lambda k: (REVIEWS[k][0], f"2024-01-{k + 1:02d}"), "labels from 'mood'"),
        (("review", "id"), lambda k: (REVIEWS[k][0], k), "labels from 'mood'"),
        (("review", "day", "id"), lambda k: (REVIEWS[k][0], f"2024-01-{k + 1:02d}", k), "labels from 'mood'"),
        (("mood",), lambda k: REVIEWS[k][1:], "texts from 'review'"),
        (("mood", "day"), lambda k: (REVIEWS[k][1], f"2024-01-{k + 1:02d}"), "texts from 'review'"),
        (("day", "id"), lambda k: (f"2024-01-{k + 1:02d}", k), "texts from 'review' and labels from 'mood'"),
    ],
)
def test_an_error_names_the_columns_of_the_training_that_a_file_lacks(tmp_path, suffix, split, names, row, missing):
    train = write(tmp_path / f"train.{suffix}", ("review", "mood"), REVIEWS)
    other = write(tmp_path / f"other.{suffix}", names, [row(number) for number in range(len(REVIEWS))])
    with pytest.raises(DataError) as found:
        read_files(Classification, [train], **{split: [other]})
    assert f"the training reads {missing}, which this file does not have" in str(found.value)
    assert all(name in str(found.value) for name in names)
    assert "\n" not in str(found.value)
    same = write(tmp_path / f"same.{suffix}", ("review", "mood"), REVIEWS)
    assert len(getattr(read_files(Classification, [train], **{split: [same]}), split)) == len(REVIEWS)


def test_numbers_of_rows_are_not_ratings_where_the_column_of_the_ratings_is_missing(tmp_path):
    rows = [(text, number % 3) for number, (text, _) in enumerate(REVIEWS)]
    train = write(tmp_path / "train.csv", ("review", "points"), rows)
    test = write(tmp_path / "test.csv", ("review", "id"), [(text, number) for number, (text, _) in enumerate(REVIEWS)])
    with pytest.raises(DataError, match=r"id \(20 values\).*the training reads labels from 'points'"):
        read_files(Regression, [train], test=[test])
    other = write(tmp_path / "other.csv", ("review", "grade"), rows)
    corpus = read_files(Regression, [train], test=[other])
    assert [each.rating for each in corpus.test] == [rating for _, rating in rows]


def test_a_column_that_is_named_but_not_there_is_named_also_where_there_is_one_column(tmp_path):
    write(tmp_path / "train.csv", ("review", "mood"), REVIEWS)
    train, reading = tmp_path / "train.csv", Reading(text_column="review", label_column="mood")
    test = write(tmp_path / "test.csv", ("review",), [(text,) for text, _ in REVIEWS])
    with pytest.raises(UnknownNameError, match=r"unknown column of .*test.csv 'mood'; expected one of: review$"):
        read_files(Classification, [train], test=[test], reading=reading)
    with pytest.raises(UsageError, match=r"--label-column is 2, but .*test.csv has one column$"):
        read_files(Classification, [test], reading=Reading(label_column="2"))
    with pytest.raises(DataError, match=r"found one \(review\), and none of labels"):
        read_files(Classification, [test])


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_the_error_of_an_unknown_label_names_the_columns_that_were_read(tmp_path, suffix):
    train = write(tmp_path / f"train.{suffix}", ("review", "mood"), REVIEWS)
    test = write(tmp_path / f"test.{suffix}", ("review", "stars", "mood"), [("a film", 4, "good"), ("one", 5, "mixed")])
    said = re.escape("was not trained on (texts from 'review', labels from 'mood'); expected one of: bad, good")
    with pytest.raises(DataError, match=said):
        read_files(Classification, [train], test=[test])


def test_the_error_of_an_unknown_tag_names_no_columns_where_none_were_chosen(tmp_path):
    train, test = tmp_path / "train.conll", tmp_path / "test.conll"
    train.write_text("a\tX\nb\tY\n\n" * 20)
    test.write_text("a\tZ\n\n")
    with pytest.raises(DataError, match="was not trained on; expected one of: X, Y"):
        read_files(Tagging, [train], test=[test])
