"""What an estimator is given in place of texts, of numbers and of answers of a usual size: refused for what it is."""

from __future__ import annotations

import numpy as np
import pytest

from toy_answers import MOODS, SMALL, TEXTS, sums
from unrolled.errors import ShapeError, UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

pd = pytest.importorskip("pandas", reason="series and tables need the extra [tables]")


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (pd.DataFrame({"text": TEXTS}), "a row with 'a good film'; expected texts or numbers: pass one column"),
        (np.array(TEXTS)[:, None], "a row with 'a good film'; expected texts or numbers: pass one column"),
        ([text.split() for text in TEXTS], "a row with 'a'; expected texts or numbers"),
        ([text.encode() for text in TEXTS], "the first example is bytes, b'a good film'; expected a text: decode it"),
        ([None], r"texts\[0\] is None; expected strings"),
        (pd.Series([None, float("nan")], dtype=object), r"texts\[0\], texts\[1\] are None, nan; expected strings"),
        ([[1.0, 2.0]], "the examples are numbers, but the estimator was fitted on texts"),
    ],
)
def test_what_an_estimator_of_texts_is_given_instead_is_named_for_what_it_is(examples, message):
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    for call in (fit.predict, fit.explain_batch):
        with pytest.raises(UsageError, match=message):
            call(examples)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
@pytest.mark.parametrize("form", [list, np.asarray, lambda times: [pd.DataFrame(each) for each in times]])
def test_a_window_that_is_all_times_is_refused_as_one_with_a_time_in_it(kind, form):
    series, totals = sums(count=8)
    times = form((1000 * series).astype(kind))
    message = "sequence 1 holds '.*'; expected numbers: leave dates out"
    with pytest.raises(UsageError, match=message):
        RecurrentRegressor(**SMALL).fit(times, totals)
    fit = RecurrentRegressor(**SMALL).fit(series, totals)
    for call in (lambda: fit.predict(times), lambda: fit.explain(times[0])):
        with pytest.raises(UsageError, match=message):
            call()


def test_answers_whose_squares_exceed_floating_point_are_refused_and_smaller_ones_are_learned():
    series, totals = sums(count=8)
    with pytest.raises(ValueError, match=r"y has numbers up to .*e\+300, whose squares exceed .*: divide them"):
        RecurrentRegressor(**SMALL).fit(series, totals / abs(totals).max() * 9e300)
    large, plain = (RecurrentRegressor(**SMALL).fit(series, unit * totals) for unit in (1e150, 1.0))
    assert large.predict(series) == pytest.approx(1e150 * plain.predict(series), rel=1e-5)


@pytest.mark.parametrize("features", [1, 2])
def test_one_sequence_in_place_of_a_list_of_them_is_named_for_what_it_is(features):
    series, totals = sums(count=8)
    frames = [pd.DataFrame(each[:, :features], columns=["load", "wind"][:features]) for each in series]
    fit = RecurrentRegressor(**SMALL).fit(frames, totals)
    given = [frames[0], frames[0].to_numpy()][:features]  # an array of one feature holds series of it
    for call in (fit.predict, fit.explain_batch):
        for one in given:
            with pytest.raises(ShapeError, match=r"the examples are one table of shape .*; pass a list of one"):
                call(one)
        assert len(call([frames[0]])) == 1
    if features == 1:
        assert fit.predict(series[:2, :, 0]) == pytest.approx(fit.predict(frames[:2]))


def test_a_gap_in_the_own_types_of_pandas_and_a_column_of_durations_are_named():
    series, totals = sums(count=8)
    frames = [pd.DataFrame(each).round().astype("Int64") for each in series]
    assert np.isfinite(RecurrentRegressor(**SMALL).fit(frames, totals).predict(frames)).all()
    frames[2].iloc[1, 0] = pd.NA
    with pytest.raises(ValueError, match="sequence 3 contains NaN; expected numbers: fill the gaps"):
        RecurrentRegressor(**SMALL).fit(frames, totals)
    frames[0]["since"] = pd.to_timedelta(range(len(frames[0])), unit="h")
    with pytest.raises(UsageError, match="sequence 1 holds '0 days 00:00:00'; expected numbers"):
        RecurrentRegressor(**SMALL).fit(frames, totals)
