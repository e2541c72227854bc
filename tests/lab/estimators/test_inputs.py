"""What an estimator is given: numbers of any unit, containers of any kind, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_score
from sklearn.multioutput import MultiOutputRegressor

from toy_answers import MOODS, SMALL, TEXTS, sums
from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

pd = pytest.importorskip("pandas", reason="series and tables need the extra [tables]")


CHOSEN = {"hidden": 8, "epochs": 12, "random_state": 0}


@pytest.fixture(scope="module")
def plain():
    """A network that learned the sums in the unit and from the origin in which they are drawn."""
    return RecurrentRegressor(**CHOSEN).fit(*sums())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "shift"), [(1.0, 1.7e9), (1.0, -1e8), (1e-9, 0.0), (1e200, 0.0), (1e-250, 0.0), (3600.0, 1.7e9)]
)
def test_the_unit_and_the_origin_of_numbers_do_not_matter(plain, scale, shift):
    series, totals = sums()
    others, _ = sums(1)
    moved = RecurrentRegressor(**CHOSEN).fit(scale * series + shift, totals)
    assert plain.score(series, totals) > 0.9
    assert moved.predict(scale * others + shift) == pytest.approx(plain.predict(others), abs=1e-3)
    assert moved.losses_ == pytest.approx(plain.losses_, rel=1e-3)
    assert moved.model_.reader.mean.numpy() == pytest.approx(
        scale * series.mean(axis=(0, 1)) + shift, rel=1e-9, abs=1e-9 * scale
    )
    assert moved.model_.reader.spread.numpy() == pytest.approx(scale * series.std(axis=(0, 1)), rel=1e-6)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 123_456.789, -1e200])
def test_a_constant_feature_does_nothing(constant):
    series, totals = sums()
    chosen = {"hidden": 4, "epochs": 2, "random_state": 0}
    with_zeros = np.concatenate([series, np.zeros((120, 6, 1))], axis=2)
    with_constant = np.concatenate([series, np.full((120, 6, 1), constant)], axis=2)
    expected = RecurrentRegressor(**chosen).fit(with_zeros, totals).predict(with_zeros)
    found = RecurrentRegressor(**chosen).fit(with_constant, totals)
    assert found.predict(with_constant) == pytest.approx(expected, abs=1e-9)
    assert found.model_.reader.spread[2] == 1


def of_objects(rows):
    found = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        found[place] = row
    return found


def test_lists_arrays_of_objects_and_pandas_hold_the_same_series():
    lengths = np.random.default_rng(0).integers(2, 9, size=16)
    series = [np.random.default_rng(k).normal(size=(length, 1)) for k, length in enumerate(lengths)]
    flat = [each[:, 0] for each in series]
    fit = RecurrentClassifier(**SMALL).fit(series, MOODS)
    expected = fit.predict_proba(series)
    given = {
        "lists": [each.tolist() for each in series],
        "objects": of_objects(series),
        "pandas": pd.Series(series, index=range(50, 66)),
        "flat arrays": flat,
        "flat lists": [each.tolist() for each in flat],
        "flat objects": of_objects(flat),
        "flat pandas": pd.Series(flat),
    }
    for name, rows in given.items():
        assert RecurrentClassifier(**SMALL).fit(rows, MOODS).predict_proba(rows) == pytest.approx(expected), name
        assert fit.predict_proba(rows) == pytest.approx(expected), name
    assert np.isfinite(cross_val_score(RecurrentClassifier(**SMALL), flat, MOODS, cv=2)).all()


def test_series_of_several_lengths_are_refused_by_an_estimator_of_rows():
    fit = RecurrentClassifier(**SMALL).fit(np.ones((16, 5)), MOODS)
    with pytest.raises(
        UsageError, match=r"the series have 2 to 4 steps, but RecurrentClassifier was fitted on an array"
    ):
        fit.predict([[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
    assert len(fit.predict([[1.0] * 5, [2.0] * 5])) == 2


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_first_text_that_is_missing_is_named_as_any_other(missing):
    with pytest.raises(UsageError, match=r"texts\[0\] is (None|nan); expected strings"):
        RecurrentClassifier(**SMALL).fit([missing, *TEXTS[1:]], MOODS)
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    with pytest.raises(UsageError, match=r"texts\[0\] is (None|nan); expected strings"):
        fit.predict([missing, "a film"])


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (map(str, TEXTS), r"the examples are a map; .*: list\(\) makes one of it"),
        ([text.encode() for text in TEXTS], "the first example is bytes, b'a good film'; expected a text: decode it"),
        (np.array(3.0), "the examples are an array without an axis"),
        (set(TEXTS), "the examples are a set; expected a list, in the order of the answers"),
        ((text for text in TEXTS), "the examples are a generator; expected a list of texts or sequences, or an array"),
        (None, "the examples are a NoneType; expected a list"),
        (pd.DataFrame({"id": [0, 1], "load": [2.0, 3.0]}).groupby("id"), "are a DataFrameGroupBy; expected a list"),
        (csr_array(np.eye(16)), r"the examples are a sparse csr_array; expected a dense array: pass X\.toarray"),
        (np.ma.masked_equal(np.eye(16), 1), "X has masked values; expected numbers"),
        (np.ma.masked_equal(np.eye(16)[:, :, None], 1), "sequence 1 has masked values; expected numbers"),
        (dict.fromkeys(TEXTS, 1), "the examples are a dict; expected a list"),
        (pd.DataFrame({"text": TEXTS}), "a row with 'a good film'; expected texts or numbers: pass one column"),
        ([text.split() for text in TEXTS], "a row with 'a'; expected texts or numbers"),
        ([[*text.split(), "!"] for text in TEXTS[:15]] + [["a"]], "a row with 'a'; expected texts or numbers"),
    ],
)
def test_what_is_neither_texts_nor_numbers_is_refused(examples, message):
    with pytest.raises(UsageError, match=message):
        RecurrentClassifier(**SMALL).fit(examples, MOODS)


def test_no_example_is_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match="0 sample"):
        RecurrentClassifier(**SMALL).fit([], [])
    for examples in (TEXTS, np.ones((16, 5, 2))):
        fit = RecurrentClassifier(**SMALL).fit(examples, MOODS)
        with pytest.raises(ValueError, match="0 sample"):
            fit.predict([])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_answer_is_no_class(missing):
    for moods in ([*MOODS[:3], missing, *MOODS[4:]], pd.Series([*MOODS[:3], missing, *MOODS[4:]], dtype=object)):
        with pytest.raises(UsageError, match=r"y\[3\] is (None|nan|of type NAType); expected an answer"):
            RecurrentClassifier(**SMALL).fit(TEXTS, moods)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected a whole number of at least 1"),
        ({"epochs": -1}, "epochs is -1; expected a whole number"),
        ({"epochs": 2.5}, r"epochs is 2\.5; expected a whole number"),
        ({"batch": 0}, "batch is 0; expected a whole number"),
        ({"lr": 0.0}, r"lr is 0\.0; expected a positive number"),
        ({"lr": "fast"}, "lr is 'fast'; expected a positive number"),
        ({"clip": -1.0}, r"clip is -1\.0; expected 0 or a positive number"),
        ({"clip": float("nan")}, "clip is nan; expected 0 or a positive number"),
        ({"weight_decay": -0.1}, r"weight_decay is -0\.1; expected 0 or a positive number"),
    ],
)
def test_settings_that_train_nothing_or_the_opposite_are_refused(setting, message):
    with pytest.raises(UsageError, match=message):
        RecurrentClassifier(**{**SMALL, **setting}).fit(TEXTS, MOODS)
    RecurrentClassifier(**{**SMALL, "epochs": np.int64(1), "clip": 0, "lr": np.float32(0.01)}).fit(TEXTS, MOODS)


@pytest.mark.parametrize("values", [np.random.default_rng(0).normal(size=(16, 5, 2)), np.arange(80.0).reshape(16, 5)])
def test_arrays_that_run_backwards_are_read_as_their_copies(values):
    for backwards in (values[:, ::-1], values[::-1], values[..., ::-1]):
        fit = RecurrentClassifier(**SMALL).fit(backwards, MOODS)
        same = RecurrentClassifier(**SMALL).fit(backwards.copy(), MOODS)
        assert np.array_equal(fit.predict_proba(backwards), same.predict_proba(backwards.copy()))
        assert fit.explain(backwards[0]).ledger == same.explain(backwards[0].copy()).ledger


@pytest.mark.parametrize(
    "mode", [torch.no_grad, torch.inference_mode, lambda: torch.device("meta")], ids=["no_grad", "inference", "device"]
)
def test_modes_and_the_default_device_of_the_caller_do_not_matter(mode):
    expected = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS).predict_proba(TEXTS)
    with mode():
        fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
        assert np.array_equal(fit.predict_proba(TEXTS), expected)
        assert fit.explain(TEXTS[0]).closes


@pytest.mark.parametrize(
    ("given", "answers", "message"),
    [
        (
            [[[1.0], [2.0]], [["0,5"], [1.0]]],
            [1, 2],
            r"sequence 2 holds '0,5'; expected numbers: write it with a point, 0\.5",
        ),
        (
            [[["on"], [2.0]], [[1.0], [1.0]]],
            [1, 2],
            "sequence 1 holds 'on'; expected numbers: leave dates out, and give",
        ),
        ([[[1.0], [2.0]], [[np.nan], [1.0]]], [1, 2], "sequence 2 contains NaN; expected numbers: fill the gaps"),
        (np.ones((2, 3)), ["0,85", "1,5"], r"y holds '0,85'; expected numbers: write it with a point, 0\.85"),
        (
            np.ones((2, 3)),
            np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
            "y holds '2024-01-01', a time",
        ),
        (
            pd.DataFrame({"date": pd.date_range("2024-01-01", periods=2), "load": [1.0, 2.0]}),
            [1, 2],
            "the first example is a row with '2024-01-01 00:00:00'; expected numbers: leave dates out",
        ),
    ],
)
def test_what_is_no_number_is_refused_with_what_to_do(given, answers, message):
    with pytest.raises(ValueError, match=message):
        RecurrentRegressor(epochs=1).fit(given, answers)


@pytest.mark.parametrize(
    "series",
    [
        [np.ones((3, 2)), np.ones((0, 2)), np.ones((2, 2))] * 4,
        [[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]] * 4,
        [[1.0, 2.0], [], [3.0]] * 4,
    ],
)
def test_an_empty_sequence_is_named(series):
    with pytest.raises(ValueError, match=r"sequence 2 is empty; expected at least one step"):
        RecurrentClassifier(**SMALL).fit(series, ["+", "-", "+"] * 4)
    whole = [each for each in series if len(each)]
    model = RecurrentClassifier(**SMALL).fit(whole, ["+", "-"] * 4)  # the control
    with pytest.raises(ValueError, match=r"sequence 2 is empty"):
        model.predict(series)


@pytest.mark.parametrize("answers", [["+"] * 16, np.zeros(16, int), pd.Series(["a"] * 16)])
def test_one_class_is_refused(answers):
    with pytest.raises(ValueError, match=r"y holds one class, .*; expected at least two"):
        RecurrentClassifier(**SMALL).fit(TEXTS, answers)
    rated = RecurrentRegressor(**SMALL).fit(TEXTS, np.ones(16)).predict(TEXTS)  # the control: numbers may be one
    assert np.isfinite(rated).all()


@pytest.mark.parametrize("kind", [list, np.array, lambda rows: pd.Series(rows, index=range(9, 9 + len(rows)))])
def test_texts_in_the_place_of_their_classes_are_refused(kind):
    rows, moods = [f"{number} films" for number in range(8)], ["+", "-"] * 4
    texts, answers = kind(rows), kind(moods)
    told = rf"y holds 8 different classes of 2 different texts, the first '{rows[0]}' of '\+'; expected the t"
    with pytest.raises(ValueError, match=told):
        RecurrentClassifier(**SMALL).fit(answers, texts)
    RecurrentClassifier(**SMALL).fit(texts, answers)  # the controls: also texts of which each is a class of its own
    RecurrentClassifier(**SMALL).fit(texts, texts)
    RecurrentClassifier(**SMALL).fit(kind(moods * 4), kind(rows * 4))  # and a few words with several answers each
    same = kind([f"{row} of the same day" for row in rows[:1] * 8])  # and one text with the names of several classes
    RecurrentClassifier(**SMALL).fit(same, kind([f"class {number}" for number in range(8)]))


@pytest.mark.parametrize("answers", [[1, "1"], ["True", True], [1.5, "a"]])
@pytest.mark.parametrize("kind", [list, tuple, lambda y: np.array(y, dtype=object), pd.Series])
def test_answers_of_several_types_are_refused(answers, kind):
    with pytest.raises(ValueError, match=r"y holds strings and others, .*; expected answers of one type"):
        RecurrentClassifier(**SMALL).fit(TEXTS, kind(answers * 8))


@pytest.mark.parametrize("answers", [[1, 0], [True, 0], [1.0, 2], ["1", "2"], [np.int64(1), 2]])
def test_numbers_of_several_types_are_classes(answers):
    assert len(RecurrentClassifier(**SMALL).fit(TEXTS, answers * 8).classes_) == 2


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((mood for mood in MOODS), r"y is a generator; .*one answer for each example: list\(\) makes one of it"),
        (dict(enumerate(MOODS)), "y is a dict; expected a list or an array of one answer for each example"),
        (set(MOODS), "y is a set; expected a list"),
        ("+-" * 8, "y is a str; expected a list"),
        (3, "y is an int; expected a list"),
        (np.zeros((16, 2)), "y has 2 answers for each example; .*: fit an estimator for each column, as MultiOutputR"),
        ([["+", "-"]] * 16, "y has 2 answers for each example"),
        (pd.DataFrame({"a": [0, 1] * 8, "b": [1, 0] * 8}), "y has 2 answers for each example"),
        (np.array([np.nan, *[0.0, 1.0] * 7, 1.0]), r"y\[0\] is nan; expected an answer for each example"),
        (pd.Series([None, *[True, False] * 7, True], dtype="boolean"), r"y\[0\] is of type NAType; expected an answer"),
    ],
)
def test_what_is_no_list_of_answers_is_refused(answers, message):
    with pytest.raises(UsageError, match=message) as caught:
        RecurrentClassifier(**SMALL).fit(TEXTS, answers)
    assert "\n" not in str(caught.value)


def test_several_answers_for_each_example_are_learned_by_an_estimator_each():
    series = np.random.default_rng(0).normal(size=(16, 5, 2))
    answers = np.stack([series.sum((1, 2)), series[:, -1, 0]], axis=1)
    both = MultiOutputRegressor(RecurrentRegressor(**SMALL)).fit(series, answers)
    assert both.predict(series).shape == (16, 2)
    alone = RecurrentRegressor(**SMALL).fit(series, answers[:, 1])
    assert both.estimators_[1].explain(series[0]).ledger == alone.explain(series[0]).ledger


@pytest.mark.parametrize(("dtype", "kind"), [("boolean", "b"), ("Int64", "i"), ("bool", "b"), ("int64", "i")])
def test_truth_values_and_integers_of_pandas_stay_what_they_are(dtype, kind):
    fit = RecurrentClassifier(**SMALL).fit(pd.Series(TEXTS, dtype="string"), pd.Series([1, 0] * 8).astype(dtype))
    assert fit.classes_.dtype.kind == fit.predict(TEXTS).dtype.kind == kind
    assert fit.explain(TEXTS[0], True).target == str(fit.classes_[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_are_read_as_arrays_also_with_gradients(dtype):
    series, totals = sums(count=16)
    given = torch.tensor(series).to(dtype).requires_grad_()
    same = given.detach().double().numpy()
    expected = RecurrentRegressor(**SMALL).fit(same, totals)
    found = RecurrentRegressor(**SMALL).fit(given, answers := torch.tensor(totals, requires_grad=True))
    assert found.score(given, answers) == expected.score(same, totals)
    assert np.array_equal(found.predict(given), expected.predict(same))
    assert np.array_equal(found.predict(list(given)), expected.predict(same))
    assert found.explain(given[0]).ledger == expected.explain(same[0]).ledger


def test_series_of_pandas_in_a_series_are_rows():
    rows = np.random.default_rng(0).normal(size=(16, 5))
    hidden = pd.Series([pd.Series(row) for row in rows])
    expected = RecurrentClassifier(**SMALL).fit(rows, MOODS).predict_proba(rows)
    assert np.array_equal(RecurrentClassifier(**SMALL).fit(hidden, MOODS).predict_proba(hidden), expected)
