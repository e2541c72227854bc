from __future__ import annotations

from statistics import fmean

import pytest

from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import words
from unrolled.lab.papers.framework.training_loop import loss_curves
from unrolled.lab.papers.framework.trial_training import train_model


def test_the_curves_are_those_of_the_log_and_an_epoch_is_the_mean_of_its_steps(tmp_path):
    settings = {"epochs": 2, "batch": 8, "lr": 0.01, "log_every": 1}
    room = tmp_path / "room"
    room.mkdir()
    small = {"hidden": 4, "embedding": 4, "dropout": 0.0}
    run = train_model(TrialSetup(room, None, tmp_path / "networks"), "lm", words(), small, settings)
    found = loss_curves(run)
    assert found["epochs"] == [epoch.step for epoch in run.history]
    assert len(found["training"]) == len(found["dev"]) == 2
    assert found["dev"][-1] != found["training"][-1]
    assert found["dev"][run.metrics["best_epoch"] - 1] == pytest.approx(run.metrics["dev_loss"])
    assert found["steps"] == sorted(found["steps"])
    first = [loss for step, loss in zip(found["steps"], found["losses"], strict=True) if step < found["epochs"][0]]
    assert fmean(first) == pytest.approx(found["training"][0], rel=0.02)  # but for the last, shorter window
    assert found["losses"][0] > found["losses"][-1]
