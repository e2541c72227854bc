"""Several examples are explained at once, each as it is alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from unrolled.errors import ShapeError, UsageError
from unrolled.explanation import api
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

pd = pytest.importorskip("pandas", reason="series and tables need the extra [tables]")

TEXTS = ["a good film", "bad", "not a good film at all", "it is bad", "a dull plot"] * 4
MOODS = ["+", "-", "-", "-", "-"] * 4
SMALL = {"hidden": 4, "embedding": 4, "epochs": 2, "random_state": 0}
VALUES = np.random.default_rng(0).normal(3.0, 2.0, size=(20, 6, 2))
TOTALS = VALUES[:, :, 0].sum(axis=1)
RAGGED = [each[: 2 + k % 5] for k, each in enumerate(VALUES)]


def check_same(together, alone):
    assert len(together) == len(alone)
    for one, other in zip(together, alone, strict=True):
        assert one.tokens == other.tokens
        assert one.target == other.target
        assert one.notes == other.notes
        assert one.exact == other.exact
        assert one.ledger.logit == pytest.approx(other.ledger.logit, abs=1e-12)
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions)
        assert len(one.by_class) == len(other.by_class)
        if other.features is not None:
            assert one.features.names == other.features.names
            torch.testing.assert_close(one.features.values, other.features.values)
            torch.testing.assert_close(one.feature_scores, other.feature_scores)


@pytest.mark.parametrize("chosen", [{}, {"bidirectional": True, "layers": 2}, {"pooling": "max"}])
def test_each_text_is_explained_as_alone(chosen):
    fit = RecurrentClassifier(**SMALL, **chosen).fit(TEXTS, MOODS)
    asked = [*TEXTS[:5], "a zorgle film"]
    found = fit.explain_batch(asked)
    check_same(found, [fit.explain(text) for text in asked])
    assert any("zorgle" in note for note in found[5].notes)
    assert not any("zorgle" in note for note in found[0].notes)
    assert found[0].ledger.logit != pytest.approx(found[1].ledger.logit)  # the control
    check_same(fit.explain_batch(pd.Series(asked), "+", "-"), [fit.explain(text, "+", "-") for text in asked])
    assert fit.explain_batch(asked, "+").phrases(least=2)[0].texts >= 2


@pytest.mark.parametrize("given", [RAGGED, VALUES, [pd.DataFrame(one, columns=["load", "wind"]) for one in RAGGED]])
def test_each_sequence_is_explained_as_alone(given):
    fit = RecurrentRegressor(**SMALL).fit(given, TOTALS)
    found = fit.explain_batch(given)
    check_same(found, [fit.explain(one) for one in given])
    assert [each.ledger.logit for each in found] == pytest.approx(fit.predict(given).tolist())


def test_each_row_of_a_data_frame_is_explained_as_alone():
    rows = pd.DataFrame(VALUES[:, :, 0], columns=[f"{hour}:00" for hour in range(6)])
    fit = RecurrentRegressor(**SMALL).fit(rows, TOTALS)
    check_same(fit.explain_batch(rows), [fit.explain(row) for _, row in rows.iterrows()])
    assert fit.explain_batch(rows)[3].tokens == tuple(rows.columns)


def test_examples_of_one_length_are_opened_by_one_call(monkeypatch):
    calls, plain = [], api.explain_batch

    def counted(model, values, *args, **options):
        calls.append(len(values))
        return plain(model, values, *args, **options)

    monkeypatch.setattr(api, "explain_batch", counted)
    fit = RecurrentRegressor(**SMALL).fit(VALUES, TOTALS)
    fit.explain_batch(VALUES)
    assert calls == [20]
    for one in VALUES[:3]:
        fit.explain(one)
    assert calls == [20, 1, 1, 1]


def test_names_are_given_for_each_example():
    fit = RecurrentRegressor(**SMALL).fit(RAGGED, TOTALS)
    names = [[f"{k}:{t}" for t in range(len(one))] for k, one in enumerate(RAGGED)]
    found = fit.explain_batch(RAGGED, tokens=names, features=["load", "wind"])
    assert [list(each.tokens) for each in found] == names
    assert found[7].features.names == ("load", "wind")
    with pytest.raises(ShapeError, match="tokens has 2 lists for 20 examples; expected one for each"):
        fit.explain_batch(RAGGED, tokens=names[:2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda texts, _: texts.explain_batch("a film"), r"are the string 'a film'; expected a list of texts"),
        (lambda texts, _: texts.explain_batch(["a", None]), r"texts\[1\] is None"),
        (lambda texts, _: texts.explain_batch([]), "0 sample"),
        (lambda texts, _: texts.explain_batch(iter(["a"])), r"a list_iterator; .*: list\(\) makes one of it"),
        (lambda texts, _: texts.explain_batch(VALUES), "are numbers, but the estimator was fitted on texts"),
        (lambda texts, _: texts.explain_batch(["a"], "x"), r"unknown class 'x'; expected one of: '\+', '-'"),
        (lambda texts, _: texts.explain_batch(["a"], ["+"]), r"unknown class \['\+'\]; expected one of"),
        (lambda texts, _: texts.explain(["a", "b"]), "is a list, .*; several texts are for explain_batch"),
        (lambda _, series: series.explain_batch(["a"]), "are texts, but the estimator was fitted on numbers"),
        (lambda _, series: series.explain_batch(VALUES[:, :, :1]), "X has 1 features, but .* is expecting 2"),
        (lambda _, series: series.explain(VALUES), r"shape \(20, 6, 2\); .*: several are for explain_batch"),
        (lambda _, series: series.explain([VALUES[0], VALUES[1, :3]]), "lengths; .*: several are for explain_batch"),
        (lambda _, series: series.explain_batch(np.full((2, 6, 2), np.nan)), "sequence 1 contains NaN"),
    ],
)
def test_what_cannot_be_read_is_refused(call, message):
    texts = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    series = RecurrentRegressor(**SMALL).fit(VALUES, TOTALS)
    with pytest.raises(ValueError, match=message) as caught:
        call(texts, series)
    assert "\n" not in str(caught.value)


def test_one_row_of_a_frame_is_not_taken_for_a_sequence():
    fit = RecurrentRegressor(**SMALL).fit(VALUES[:, :, 0], TOTALS)
    with pytest.raises(UsageError, match=r"shape \(1, 6\); expected one example, of shape \(time,\)"):
        fit.explain(VALUES[:1, :, 0])
    assert fit.explain(VALUES[0, :, :1]).ledger == fit.explain(VALUES[0, :, 0]).ledger  # the control
    assert len(fit.explain_batch(VALUES[:1, :, 0])) == 1


def test_an_estimator_that_was_pickled_before_verbose_is_explained_cloned_and_fitted():
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    stored = pickle.loads(pickle.dumps(fit))
    del stored.__dict__["verbose"]
    assert stored.explain(TEXTS[0]).ledger == fit.explain(TEXTS[0]).ledger
    assert len(stored.explain_batch(TEXTS)) == len(TEXTS)
    assert clone(stored).fit(TEXTS, MOODS).get_params() == fit.get_params()
