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


def test_methods_are_compared_on_the_same_networks_task_by_task():
    """Integrated gradients find .1 more in every network of one task, and .1 less in every network of another.

    A method is .2 better in one network of a task only: chance among trainings, so the interval holds 0.
    """
    found = []
    for trial in KnownTruth().trials("cpu"):
        if (task := trial.settings["task"]) not in ("keyword", "parity") or "seed" not in trial.settings:
            continue
        first = trial.settings["network"] == "lstm" and trial.settings["seed"] == 0
        sets = {
            "shares": 0.5,
            "integrated gradients, 32": 0.6 if task == "keyword" else 0.4,
            "secant": 0.7 if first and task == "keyword" else 0.5,
            "DeepLift": 0.3,
        }
        methods = {
            name: dict.fromkeys(("first", "set", "first by size", "set by size"), right) for name, right in sets.items()
        }
        values = {"accuracy": 1.0, "learned": True, "cases": 9, "methods": methods, "missing": {}}
        found.append(Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {}))
    (table,) = (
        table for table in KnownTruth().report(found, "cpu").tables if "intervals over trainings" in table.title
    )
    rows = {row[0]: row[1:] for row in table.cells()}
    assert rows["shares less integrated gradients, 32"][:3] == ["+0.000 (+0.000 to +0.000)", "1", "1"]
    assert rows["shares less DeepLift"][:3] == ["+0.200 (+0.200 to +0.200)", "2", "0"]
    assert rows["shares less secant"][1:3] == ["0", "1"]
    low, high = (float(end) for end in rows["shares less secant"][0].partition("(")[2].rstrip(")").split(" to "))
    assert low < -0.017 < 0 < high  # -.017 is the mean
    assert "shares less LRP" not in rows
    assert {row[-2:] for row in map(tuple, rows.values())} == {("2", "12")}
