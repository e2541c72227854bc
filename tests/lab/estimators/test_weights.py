"""Weights of examples: one of weight 0 is as one that was not given."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

QUICK = {"hidden": 6, "epochs": 3, "random_state": 0}
SERIES = np.random.default_rng(0).normal(size=(30, 5))
TOTALS = SERIES.sum(axis=1)
WEIGHTS = np.linspace(0.5, 2.0, 30)


def with_outlier(weight):
    """The series with one more, of other numbers and another answer."""
    return np.vstack([SERIES, np.full((1, 5), 1e6)]), np.append(TOTALS, 1e9), np.append(WEIGHTS, weight)


def test_an_example_of_weight_0_does_not_set_the_scale_of_the_others():
    expected = RecurrentRegressor(**QUICK).fit(SERIES, TOTALS, sample_weight=WEIGHTS).predict(SERIES)
    series, totals, weights = with_outlier(0.0)
    found = RecurrentRegressor(**QUICK).fit(series, totals, sample_weight=weights).predict(SERIES)
    np.testing.assert_array_equal(found, expected)
    series, totals, weights = with_outlier(0.01)  # control: a small weight is a weight
    other = RecurrentRegressor(**QUICK).fit(series, totals, sample_weight=weights).predict(SERIES)
    assert np.abs(other - expected).max() > 1.0


def test_a_class_whose_examples_have_weight_0_is_known():
    signs = np.where(TOTALS > 0, "up", "down")
    expected = RecurrentClassifier(**QUICK).fit(SERIES, signs).predict_proba(SERIES)
    series, _, weights = with_outlier(0.0)
    weights[:-1] = 1.0
    found = RecurrentClassifier(**QUICK).fit(series, np.append(signs, "up"), sample_weight=weights)
    np.testing.assert_array_equal(found.predict_proba(SERIES), expected)
    strange = RecurrentClassifier(**QUICK).fit(series, np.append(signs, "else"), sample_weight=weights)
    assert strange.classes_.tolist() == ["down", "else", "up"]


def test_a_text_of_weight_0_teaches_no_word():
    texts = ["a good film", "a bad film", "not a good film", "not a bad film"] * 3
    moods = ["+", "-", "-", "+"] * 3
    expected = RecurrentClassifier(**QUICK).fit(texts, moods)
    weights = [*[1.0] * len(texts), 0.0]
    found = RecurrentClassifier(**QUICK).fit([*texts, "a zebra"], [*moods, "+"], sample_weight=weights)
    new = [*texts, "a zebra"]
    np.testing.assert_array_equal(found.predict_proba(new), expected.predict_proba(new))
    assert found.explain("a zebra").tokens == ("a", "zebra†")
    weights[-1] = 0.5  # control: a small weight is a weight
    other = RecurrentClassifier(**QUICK).fit([*texts, "a zebra"], [*moods, "+"], sample_weight=weights)
    assert other.explain("a zebra").tokens == ("a", "zebra")


def test_a_text_of_weight_0_must_be_a_text():
    with pytest.raises(UsageError, match=r"texts\[2\] is None; expected strings"):
        RecurrentClassifier(**QUICK).fit(["a film", "a plot", None], ["+", "-", "+"], sample_weight=[1, 1, 0])
