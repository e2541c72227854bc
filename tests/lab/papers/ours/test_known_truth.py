"""Networks with a known answer: which of them count."""

from __future__ import annotations

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.known_truth import KnownTruth


def test_networks_that_did_not_learn_are_left_out_and_said():
    def result(trial, right):
        shares = {"first": right, "set": right, "first by size": right, "set by size": right}
        values = {"accuracy": right, "learned": right > 0.99, "methods": {"secant": shares}, "missing": {}}
        return Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {})

    trials = [trial for trial in KnownTruth().trials("cpu") if trial.settings["task"] == "keyword"]
    assert len(trials) == 6
    report = KnownTruth().report([result(trial, 1.0 if trial is trials[0] else 0.7) for trial in trials], "cpu")
    summary, *_, learned = report.tables
    assert summary.cells() == [["secant", "1.00", "1.00", "1.00", "1.00"]]
    assert learned.cells() == [["keyword, LSTM", "1 of 3", "70.0"], ["keyword, GRU", "0 of 3", "70.0"]]
