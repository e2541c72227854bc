"""Trials of other items without biases: nothing else differs, and the networks have none."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.verdict import compare
from unrolled.lab.papers.implicit_ngrams.approximation import Approximation
from unrolled.lab.papers.implicit_ngrams.names_of_code import EntitiesOfCode
from unrolled.lab.papers.implicit_ngrams.relations_of_code import RelationsOfCode
from unrolled.lab.papers.implicit_ngrams.single_changes import SingleChanges
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics
from unrolled.lab.papers.implicit_ngrams.without_biases import WithoutBiases

ITEMS = {
    "errors": Approximation,
    "sentiment": SentimentAndTopics,
    "relations": RelationsOfCode,
    "names": EntitiesOfCode,
    "notebook": SingleChanges,
    "longer": SingleChanges,
    "optimisers": SingleChanges,
}
NAMED = {"part", "network", "changed"}
CHANGED = {
    "no biases": {"bias": False},
    "no biases, one direction": {"bias": False, "bidirectional": False},
    "no biases, normalised spectrum": {"bias": False, "spectral": True},
    "no biases, orthogonal start": {"bias": False, "orthogonal": True},
    "no biases, all settings of the notebook": {"bias": False},
    "no biases, rate 0.002, 30 epochs, a new optimiser in each": {"bias": False},
    "no biases, a new optimiser in each epoch": {"bias": False},
    "no biases, orthogonal start, a new optimiser in each epoch": {"bias": False, "orthogonal": True},
}


@pytest.mark.parametrize("scale", ["cpu", "day"])
@pytest.mark.parametrize("part", ITEMS)
def test_a_trial_is_one_of_another_item_without_biases(part, scale):
    others = [
        {name: value for name, value in trial.settings.items() if name not in NAMED}
        for trial in ITEMS[part]().trials(scale)
    ]
    trials = [trial for trial in WithoutBiases().trials(scale) if trial.settings["part"] == part]
    named = {each.label.partition(", seed")[0] for each in trials}
    counts = {"errors": 3, "sentiment": 7, "relations": 8, "names": 10, "notebook": 3, "longer": 1, "optimisers": 6}
    assert len(named) == counts[part]
    assert {each.settings["seed"] for each in trials} <= {0, 1, 2}
    for trial in trials:
        change = CHANGED[trial.settings["changed"]]
        assert change.items() <= dict(trial.settings).items()
        rest = {name: value for name, value in trial.settings.items() if name not in NAMED | change.keys()}
        assert rest in [{name: value for name, value in each.items() if name not in change} for each in others]


def test_a_network_without_biases_has_fewer_parameters(tmp_path):
    (trial,) = (each for each in WithoutBiases().trials("smoke") if each.label == "sentiment: Elman, no biases")
    (other,) = (each for each in SentimentAndTopics().trials("smoke") if each.label == "Elman on SST-2, seed 0")
    without, plain = (
        item.run(each, TrialSetup(tmp_path / name, None, tmp_path / name))
        for name, item, each in (("one", WithoutBiases(), trial), ("two", SentimentAndTopics(), other))
    )
    assert plain["parameters"] - without["parameters"] == 2 * trial.settings["hidden"]


@pytest.mark.parametrize("part", ["notebook", "longer", "optimisers"])
def test_a_trial_of_single_changes_is_made_as_there_without_biases(part, tmp_path):
    """The same parts of that item learn: each epoch is a training of its own, and only the biases are missing."""
    trial = next(each for each in WithoutBiases().trials("smoke") if each.settings["part"] == part)
    change = trial.settings["changed"].replace("orthogonal start, ", "").removeprefix("no biases, ")
    (other,) = (
        each
        for each in SingleChanges().trials("smoke")
        if (each.settings.get("changed"), each.settings.get("network")) == (change, trial.settings["network"])
        and each.settings["part"] != "optimisers"
    )
    without, plain = (
        item.run(each, TrialSetup(tmp_path / name, None, tmp_path / name))
        for name, item, each in (("one", WithoutBiases(), trial), ("two", SingleChanges(), other))
    )
    assert without.keys() == plain.keys()
    assert without["epochs"] == plain["epochs"] == 2
    assert {"best_epoch"} <= without.keys()
    assert without["parameters"] < plain["parameters"]


def test_published_numbers_stand_beside_ours_and_errors_decide():
    experiment = WithoutBiases()
    values = {"step_zero": 0.25, "sum_zero": 0.5, "state": 2.0, "dev_accuracy": 0.8, "test_accuracy": 0.7}
    values |= {"dev_all_f1": 0.4, "test_all_f1": 0.3, "dev_f1": 0.6, "test_f1": 0.5}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")]
    report = experiment.report(results, "day")
    errors, sentiment, relations, names = (
        {tuple(row[:2]): row[2:] for row in table.cells()} for table in report.tables
    )
    assert errors["GRU", "no biases, normalised spectrum"] == ["25.0 (21.7)", "50.0", "2.00", "80.0"]
    assert sentiment["MVM-E", "no biases"] == ["80.0 ± 0.0 (59.6)", "70.0 ± 0.0 (59.5)"]  # three seeds
    assert relations["MVMA-E", "no biases"] == ["40.0 (27.8)", "30.0 (25.6)"]
    assert errors["LSTM", "no biases, all settings of the notebook"] == ["25.0 (46.6)", "50.0", "2.00", "80.0"]
    assert sentiment["MVM-E", "no biases, rate 0.002, 30 epochs, a new optimiser in each"] == [
        "80.0 (59.6)",
        "70.0 (59.5)",
    ]
    assert relations["MVM-G", "no biases, a new optimiser in each epoch"] == ["40.0 (51.2)", "30.0 (52.6)"]
    assert names["MVM-E", "no biases"] == ["60.0 (27.8)", "50.0 (25.6)"]
    assert [each.what for each in compare(experiment, results, report)] == [
        f"{network}, {change}, step, zero: 25.0 ({published})"
        for change in ("no biases, normalised spectrum", "no biases, all settings of the notebook")
        for network, published in (("GRU", 21.7), ("Elman", 26.2), ("LSTM", 46.6))
    ]
