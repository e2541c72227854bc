"""Hours are measured from the first steps of a training, and nothing of it is kept."""

from __future__ import annotations

import os
import signal

import pytest

from unrolled.errors import StoppedError
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.papers.framework.experiment import Experiment, Report, Trial
from unrolled.lab.papers.framework.measured_hours import estimate, measured_hours
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.framework.trial_training import train_model, train_once

CORPUS = negation((64, 8, 8))


class Trains(Experiment):
    """A training with batches of two."""

    name = "ours/trains"
    title = "Trains"
    source = "ours"

    def __init__(self, steps=600, train=train_once):
        self.steps, self.train, self.ended = steps, train, False

    def trials(self, scale):
        return [Trial(f"seed {seed}", {"seed": seed}) for seed in (0, 1, 2)]

    def run(self, trial, setup):
        training = {"epochs": 100, "steps": self.steps, "batch": 2, "patience": 100}
        self.train(setup, "classify", CORPUS, {"hidden": 4, "embedding": 4}, training)
        self.ended = True
        return {}

    def report(self, results, scale):
        return Report([])


class Counts(Trains):
    """Trains nothing."""

    name = "ours/counts"

    def run(self, trial, setup):
        return {}


class Ticks:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("train", [train_model, train_once])
def test_the_hours_are_those_of_all_steps_at_the_speed_of_the_first(train):
    experiment = Trains(train=train)
    found = measured_hours(experiment, experiment.trials("cpu")[0], clock=Ticks())
    assert found == pytest.approx(600 / 3600)  # one tick a step
    assert not experiment.ended


def test_a_trial_without_a_training_has_no_estimate():
    for experiment in (Trains(train=lambda *_: None), Counts()):
        assert measured_hours(experiment, experiment.trials("cpu")[0]) is None


def test_a_signal_from_outside_ends_the_estimate():
    experiment = Trains(train=lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(StoppedError):
        estimate([experiment, Trains()], "cpu", None)


def test_the_table_multiplies_by_the_seeds():
    table = estimate([Trains(steps=None), Counts()], "cpu", None)
    (name, measured, one, all_seeds), (other, *rest) = table.cells()
    assert (name, measured) == ("ours/trains", "1 of 1")
    assert float(all_seeds) == pytest.approx(3 * float(one), abs=0.2)
    assert (other, *rest) == ("ours/counts", "0 of 1", "–", "–")


def test_a_trial_without_its_data_is_not_measured(tmp_path):
    said = []
    lacks = Trains(train=lambda *_: find_file("ptb/nowhere.txt", tmp_path))
    (row,) = estimate([lacks], "cpu", tmp_path, said.append).cells()
    assert row == ["ours/trains", "0 of 1", "–", "–"]
    assert said[0].startswith("ours/trains, seed 0: not measured: no ptb/nowhere.txt in ")
