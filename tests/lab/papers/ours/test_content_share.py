"""The share p: which networks choose it, and the distance to the default."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.content_share import ContentShare


def result(trial, best):
    """Give a result in which the p named ``best`` finds 0.2 more of the cases than all others."""
    methods = {method: {"first": 0.7 if method == best else 0.5, "set": 0.4} for method in trial.settings["methods"]}
    return Result(trial, {"learned": True, "methods": methods}, 1.0, "2026-01-01", "a test", "a machine", {})


def test_two_seeds_choose_and_confirm_apart():
    trials = ContentShare().trials("cpu")
    groups = [trial.settings["group"] for trial in trials]
    assert {name: groups.count(name) for name in groups} == {"by hand": 13, "first seed": 24, "second seed": 24}
    assert {trial.settings["seed"] for trial in trials if trial.settings["group"] == "second seed"} == {1}


@pytest.mark.parametrize(("best", "distance"), [("shares(1)", "+0.200 (+0.200 to +0.200)"), ("shares", "-0.200")])
def test_the_distance_is_that_to_the_default_on_the_same_networks(best, distance):
    trials = ContentShare().trials("cpu")
    found, distances = ContentShare().report([result(trial, best) for trial in trials], "cpu").tables
    assert [row[0] for row in found.cells()] == ["0", "0.25", "0.5", "0.75", "1"]
    last = distances.cells()[-1]
    assert last[0] == "1"
    for first, whole in zip(last[3::2], last[4::2], strict=True):
        assert first.startswith(distance)
        assert whole == "+0.000 (+0.000 to +0.000)"
    assert distance.startswith(last[1])  # written by hand: without an interval
    assert last[2] == "+0.000"


def test_networks_that_did_not_learn_are_left_out():
    trials = ContentShare().trials("cpu")
    unlearned = Result(trials[-1], {"learned": False}, 1.0, "2026-01-01", "a test", "a machine", {})
    results = [*(result(trial, "shares") for trial in trials[:-1]), unlearned]
    assert "second seed: 23 networks" in ContentShare().report(results, "cpu").tables[0].title
