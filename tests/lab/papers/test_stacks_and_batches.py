"""Trials of other items whose matrices are normalised together, or whose batches are larger: nothing else differs."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.verdict import compare
from unrolled.lab.papers.implicit_ngrams.approximation import Approximation
from unrolled.lab.papers.implicit_ngrams.single_changes import SingleChanges
from unrolled.lab.papers.implicit_ngrams.stacks_and_batches import StacksAndBatches
from unrolled.lab.papers.implicit_ngrams.without_biases import WithoutBiases
from unrolled.lab.training.run_folder import load_run

STACK, BATCHES = {"spectral": True, "spectral_stack": True}, {"batch": 1024}
NOTEBOOK = "all settings of the notebook"
THIRTY = "rate 0.002, 30 epochs, a new optimiser in each"
OTHERS = {
    "GRU, matrices normalised together": (Approximation, "GRU, normalised, weight decay 1e-05, seed 0", STACK),
    "LSTM, matrices normalised together": (Approximation, "LSTM, normalised, weight decay 1e-05, seed 0", STACK),
    f"GRU, {NOTEBOOK}, matrices normalised together": (SingleChanges, f"errors: GRU, {NOTEBOOK}", STACK),
    f"LSTM, {NOTEBOOK}, matrices normalised together": (SingleChanges, f"errors: LSTM, {NOTEBOOK}", STACK),
    f"GRU, {NOTEBOOK}, no biases, matrices normalised together": (
        WithoutBiases,
        f"notebook: GRU, no biases, {NOTEBOOK}",
        STACK,
    ),
    f"LSTM, {NOTEBOOK}, no biases, matrices normalised together": (
        WithoutBiases,
        f"notebook: LSTM, no biases, {NOTEBOOK}",
        STACK,
    ),
    f"MVM-E, {THIRTY}, batches of 1,024": (SingleChanges, f"sentiment: MVM-E, {THIRTY}", BATCHES),
    f"MVM-E, no biases, {THIRTY}, batches of 1,024": (WithoutBiases, f"longer: MVM-E, no biases, {THIRTY}", BATCHES),
    f"MVM-E, no biases, {THIRTY}, batches of 1,024, weight decay 1e-05": (
        WithoutBiases,
        f"longer: MVM-E, no biases, {THIRTY}",
        {**BATCHES, "weight_decay": 1e-5},
    ),
}
NAMED = {"network", "changed"}


def trials(scale):
    return {trial.label: trial for trial in StacksAndBatches().trials(scale)}


def without(settings, names):
    return {name: value for name, value in settings.items() if name not in names}


def test_a_trial_is_one_of_another_item_with_its_changes():
    assert trials("day").keys() == trials("smoke").keys() == OTHERS.keys()
    for label, trial in trials("day").items():
        item, other, change = OTHERS[label]
        (settings,) = (each.settings for each in item().trials("day") if each.label == other)
        assert without(trial.settings, NAMED) == {**without(settings, NAMED), **change}
        assert not change.items() <= dict(settings).items()


def test_the_matrices_of_a_trial_are_normalised_together(tmp_path):
    """The norm of the stack is one after an epoch as after the next, which starts from it."""
    trial = trials("smoke")[f"GRU, {NOTEBOOK}, no biases, matrices normalised together"]
    StacksAndBatches().run(trial, TrialSetup(tmp_path, None, tmp_path))
    for epoch in (1, 2):
        (weight,) = (p for name, p in load_run(tmp_path / f"epoch {epoch}").model.named_parameters() if "_hh" in name)
        weight = weight.detach()
        assert float(torch.linalg.matrix_norm(weight, 2)) == pytest.approx(1, abs=0.05)
        assert torch.linalg.matrix_norm(weight.unflatten(0, (3, -1)), 2).max() < 0.95


def test_published_numbers_stand_beside_ours_and_the_errors_of_a_step_are_compared():
    experiment = StacksAndBatches()
    values = {"dev_accuracy": 0.8, "test_accuracy": 0.7, "step_zero": 0.25, "sum_zero": 0.5, "state": 2.0}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")]
    report = experiment.report(results, "day")
    errors, sentiment = ({tuple(row[:2]): row[2:] for row in table.cells()} for table in report.tables)
    assert errors["GRU", "matrices normalised together"] == ["25.0 (21.7)", "50.0", "2.00", "80.0"]
    assert sentiment["MVM-E", f"no biases, {THIRTY}, batches of 1,024"] == ["80.0 (59.6)", "70.0 (59.5)"]
    assert len(errors) == 6
    assert [each.agrees for each in compare(experiment, results, report)] == 6 * [False]
