"""Frames and series of libraries other than pandas, as polars: arrays by ``__array__``, with a shape and no ndim."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from toy_answers import MOODS, SMALL, TEXTS, sums
from unrolled.errors import ShapeError, UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor


class Series:
    """A column; its type is not numpy's."""

    dtype = "Float64"

    def __init__(self, values):
        self.values = values
        self.shape = np.shape(values)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def to_numpy(self):
        return np.array(self.values)


class Frame(Series):
    """A table; it is a list of its columns."""

    def __init__(self, values, columns):
        super().__init__(values)
        self.columns = columns

    def __iter__(self):
        return iter(np.transpose(self.values))


def test_sequences_that_are_such_frames_are_read_as_arrays_with_the_names_of_their_columns():
    series, totals = sums(count=8)
    frames = [Frame(each[:, :2], ["load", "wind"]) for each in series]
    fit = RecurrentRegressor(**SMALL).fit(frames, totals)
    plain = RecurrentRegressor(**SMALL).fit(series[:, :, :2], totals)
    np.testing.assert_array_equal(fit.predict(frames), plain.predict(series[:, :, :2]))
    assert fit.feature_names_in_.tolist() == ["load", "wind"]
    with pytest.raises(UsageError, match="columns of the training in another order"):
        fit.predict([Frame(series[0][:, :2], ["wind", "load"])])
    with pytest.raises(ShapeError, match=r"the examples are one table of shape .*; pass a list of one"):
        fit.predict(frames[0])


def test_such_series_of_several_lengths_are_sequences():
    series, totals = sums(count=8)
    rows = [each[: 3 + k % 3, 0] for k, each in enumerate(series)]
    fit, plain = (RecurrentRegressor(**SMALL).fit(given, totals) for given in (list(map(Series, rows)), rows))
    np.testing.assert_array_equal(fit.predict(rows), plain.predict(rows))


def test_a_table_of_texts_is_named_for_what_it_is():
    with pytest.raises(UsageError, match="a row with 'a good film'; expected texts or numbers: pass one column"):
        RecurrentClassifier(**SMALL).fit(Frame([[text] for text in TEXTS], ["text"]), MOODS)


def test_a_missing_answer_of_such_a_series_is_named_by_its_place():
    answers = Series([*MOODS[:-1], None])
    with pytest.raises(UsageError, match=rf"y\[{len(MOODS) - 1}\] is None; expected an answer for each example"):
        RecurrentClassifier(**SMALL).fit(TEXTS, answers)
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, Series(list(MOODS)))
    assert fit.classes_.tolist() == sorted(set(MOODS))


def test_a_column_of_answers_is_read_as_its_list():
    given = np.array([[each] for each in MOODS], dtype=object)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        fit = RecurrentClassifier(**SMALL).fit(TEXTS, Frame(given, ["mood"]))
    assert fit.classes_.tolist() == sorted(set(MOODS))
    given[1, 0] = None
    with pytest.raises(UsageError, match=r"y\[1\] is None; expected an answer for each example"):
        RecurrentClassifier(**SMALL).fit(TEXTS, Frame(given, ["mood"]))
    two = np.array([[1, "a"]] * len(TEXTS), dtype=object)  # control: several columns are named as such
    with pytest.raises(UsageError, match="y has 2 answers for each example"):
        RecurrentClassifier(**SMALL).fit(TEXTS, Frame(two, ["a", "b"]))


class Arrow(Series):
    """A column of strings whose to_numpy does not copy by itself, as that of pyarrow."""

    def to_numpy(self):
        raise RuntimeError("needed to copy")


def test_a_column_is_read_by_the_protocol_of_numpy():
    series, totals = sums(count=8)
    fit = RecurrentRegressor(**SMALL).fit(Arrow(series[:, :, 0]), totals)
    np.testing.assert_array_equal(fit.predict(Arrow(series[:, :, 0])), fit.predict(series[:, :, 0]))
