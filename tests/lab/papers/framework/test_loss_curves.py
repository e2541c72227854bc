from __future__ import annotations

from statistics import fmean

import pytest

from unrolled.lab.papers.framework.curve_figure import curves_of, plot_curves
from unrolled.lab.papers.framework.experiment import Result, Trial, TrialSetup
from unrolled.lab.papers.framework.figure_style import COLOURS, grid
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


def result_of(**values):
    return Result(Trial("a training", {"seed": 0}), values, 1.0, "2026-01-01", "unrolled", "a machine", {})


def test_a_panel_shows_the_curves_of_the_trainings_that_kept_them():
    kept = {"steps": [1, 2, 3], "losses": [900.0, 5.0, 4.0], "epochs": [3], "training": [4.5], "dev": [3.0]}
    of_two_seeds = curves_of([result_of(loss=1.0), result_of(curves=kept), result_of(curves={})])
    assert of_two_seeds == kept
    assert curves_of([result_of(loss=1.0)]) is None  # the control
    figure, (panel,) = grid()
    plot_curves(panel, {"gru": None, "lstm": kept})
    training, dev = panel.lines
    assert (list(training.get_ydata()), list(dev.get_ydata())) == (kept["losses"], kept["dev"])
    assert (dev.get_label(), dev.get_color()) == ("lstm", COLOURS[1])
    assert panel.get_ylim() == pytest.approx((0.98 * 3.0, 1.02 * 5.0))  # the first loss stays outside
    assert figure.axes == [panel]
