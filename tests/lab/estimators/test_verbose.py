"""An estimator is silent; by ``verbose`` it prints a line for each epoch, and a line a minute within a long one."""

from __future__ import annotations

import itertools
import re
import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from unrolled.errors import UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

TEXTS = ["a good film", "a bad film", "good", "bad"] * 4
MOODS = ["+", "-"] * 8
SMALL = {"hidden": 4, "embedding": 4, "epochs": 3, "random_state": 0}
EPOCH = re.compile(r"epoch \d/3  train loss \d\.\d{4}  \d+\.\d s")


def test_it_is_silent_unless_asked(capsys):
    RecurrentClassifier(**SMALL).fit(TEXTS, MOODS).explain_batch(TEXTS)
    assert capsys.readouterr() == ("", "")
    told = RecurrentClassifier(**SMALL, verbose=True).fit(TEXTS, MOODS)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 3
    assert all(map(EPOCH.fullmatch, lines))
    assert [float(line.split()[4]) for line in lines] == pytest.approx(told.losses_, abs=1e-4)
    assert err == ""
    cross_val_score(clone(told), TEXTS, MOODS, cv=2)
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_what_is_said_changes_nothing():
    quiet = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    told = RecurrentClassifier(**SMALL, verbose=1).fit(TEXTS, MOODS)
    assert np.array_equal(quiet.predict_proba(TEXTS), told.predict_proba(TEXTS))
    assert clone(told).get_params() == quiet.get_params() | {"verbose": 1}


def test_a_long_epoch_says_each_minute_that_it_goes_on(capsys, monkeypatch):
    seconds = itertools.count(0, 20)  # each look at the clock is 20 seconds after the last
    fit = RecurrentRegressor(**SMALL | {"epochs": 1, "batch": 1}, verbose=1)
    values = np.random.default_rng(0).normal(size=(9, 4, 2))
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: float(next(seconds)))
        fit.fit(values, values[:, 0, 0])
        lines = capsys.readouterr().out.splitlines()
        fit.set_params(verbose=0).fit(values, values[:, 0, 0])
        assert capsys.readouterr().out == ""
    assert 2 <= len(lines) < 9
    assert all(re.fullmatch(r"epoch 1/1  loss \d\.\d{4}  batch \d/9", line) for line in lines[:-1])
    assert lines[-1].startswith("epoch 1/1  train loss")


def test_many_explanations_say_each_minute_how_many_are_done(capsys, monkeypatch):
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS).set_params(verbose=1)
    seconds = itertools.count(0, 70)
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: float(next(seconds)))
        fit.explain_batch([*TEXTS * 3, "bad film"])
    assert capsys.readouterr().out.splitlines()[-1] == "explained 49 of 49 examples"


@pytest.mark.parametrize("given", [-1, "yes", None, 0.5])
def test_another_verbose_is_refused(given):
    with pytest.raises(UsageError, match=r"verbose is .*; expected False or True, or 0 or a positive whole number"):
        RecurrentClassifier(**SMALL, verbose=given).fit(TEXTS, MOODS)


def test_a_stored_estimator_explains_as_before(tmp_path):
    fit = RecurrentClassifier(**SMALL).fit(TEXTS, MOODS)
    joblib.dump(fit, tmp_path / "fit.joblib")
    again = joblib.load(tmp_path / "fit.joblib")
    assert again.get_params() == fit.get_params()
    before, after = fit.explain_batch(TEXTS), again.explain_batch(TEXTS)
    assert [each.ledger for each in after] == [each.ledger for each in before]
