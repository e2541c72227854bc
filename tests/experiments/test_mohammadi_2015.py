"""CS 224D, lecture notes IV: the surface and the descents, and what gradients are measured."""

from __future__ import annotations

import math

import pytest
import torch

from unrolled.experiments.mohammadi_2015_clipping_surface import ClippingSurface, error
from unrolled.experiments.mohammadi_2015_gradients import Gradients
from unrolled.study.experiment import Bench, Trial


@pytest.mark.parametrize(("w", "b"), [(5.0, -2.0), (4.2, -2.8), (6.5, -3.2)])
def test_the_error_is_that_of_one_unit_after_fifty_steps(w, b):
    h = 0.5
    for _ in range(50):
        h = w / (1 + math.exp(-h)) + b
    expected = (1 / (1 + math.exp(-h)) - 0.7) ** 2
    at = (torch.tensor(each, dtype=torch.float64) for each in (w, b))
    assert error(*at).item() == pytest.approx(expected, abs=1e-12)


def test_a_clipped_descent_stays_and_finds_what_an_unclipped_one_is_thrown_from(tmp_path):
    clipped, free = (
        ClippingSurface().run(
            Trial("a test", {"lattice": 7, "updates": 400, "rate": 0.1, "clip": clip}),
            Bench(tmp_path, None, tmp_path / "shelf"),
        )
        for clip in (1.0, None)
    )
    assert clipped["longest_step"] == pytest.approx(0.1)  # rate times threshold
    assert free["longest_step"] > 10
    assert clipped["steepest"] > 100
    assert clipped["found"] > free["found"]
    assert (clipped["w"][0], clipped["b"][0]) == (free["w"][0], free["b"][0])
    assert clipped["w"] != free["w"]


def trial(cell, **changes):
    (first, *_) = (
        trial
        for trial in Gradients().trials("smoke")
        if (trial.settings["cell"], trial.settings["optimiser"], trial.settings["clip"]) == (cell, "adam", 1.0)
    )
    return Trial(first.label, {**first.settings, **changes})


def test_gradients_vanish_in_a_sigmoid_network_and_not_in_a_rectifier_with_the_identity(tmp_path):
    arriving = {}
    for cell in ("sigmoid", "relu, identity"):
        found = Gradients().run(trial(cell), Bench(tmp_path, None, tmp_path / "shelf"))
        assert found["before"]["kept"]
        assert len(found["before"]["jacobian"]) == len(found["after"]["loss"]) == 17  # distances 0 to 16
        assert found["before"] != found["after"]
        assert set(found["accuracy"]) >= {"8", "12", "16"}
        arriving[cell] = found["before"]["jacobian"][12]
    assert arriving["sigmoid"] < 1e-6
    assert arriving["relu, identity"] > 0.5


def test_a_training_that_diverges_is_a_result_and_no_failure(tmp_path):
    wild = trial("relu, identity", optimiser="descent", rate=1e6, clip=None, steps=30)
    found = Gradients().run(wild, Bench(tmp_path, None, tmp_path / "shelf"))
    assert found["diverged"] is not None
    assert found["after"] is None
    assert found["accuracy"] is None
