"""The share p on texts: dev of one training chooses, test of that training and of another one judges."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.content_share_of_texts import ContentShareOfTexts
from unrolled.lab.papers.ours.faithfulness import Faithfulness


def result(trial, best, by_chance=0):
    """Give a result in which the p named ``best`` scores 0.1 more than all else, and ``by_chance`` more on test."""
    gained = 100 + (by_chance if trial.settings["split"] == "test" else 0)
    methods = {
        method: {
            "scores": [500 + gained * (method == best)] * trial.settings["texts"],
            "cost": 2.0,
            "cancellation": 1.5,
        }
        for method in trial.settings["methods"]
    }
    values = {"accuracy": 0.9, "texts": trial.settings["texts"], "words": 20.0, "methods": methods, "missing": {}}
    return Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {})


def test_networks_and_texts_are_those_of_faithfulness_and_dev_is_of_the_first_training_alone():
    trials = ContentShareOfTexts().trials("cpu")
    read = {(t.settings["split"], t.settings["seed"]): [] for t in trials}
    for trial in trials:
        read[trial.settings["split"], trial.settings["seed"]].append(trial.settings["network"])
    assert list(read) == [("dev", 0), ("test", 0), ("test", 1)]
    assert all(names == read["dev", 0] and len(names) == 11 for names in read.values())
    expansions = [t for t in Faithfulness().trials("cpu") if t.settings["family"] == "expansions"]
    known = {(t.settings["network"], t.settings["split"]): t.settings for t in expansions}
    for trial in trials:
        same = known[trial.settings["network"], trial.settings["split"]]
        assert (trial.settings["texts"], trial.settings["trained"]) == (same["texts"], same["trained"])


@pytest.mark.parametrize(("best", "apart"), [("shares(1)", "+0.150"), ("shares(0.25)", "+0.150"), ("shares", "+0.000")])
def test_dev_chooses_and_the_distance_is_that_on_test(best, apart):
    tables = (
        ContentShareOfTexts().report([result(t, best, 50) for t in ContentShareOfTexts().trials("cpu")], "cpu").tables
    )
    choice = next(table for table in tables if "Choosing" in table.title).cells()
    assert [row[0] for row in choice[-2:]] == ["each by itself, the mean", "one for all, by the mean"]
    assert all(row[1] == best and row[3].startswith(apart) for row in choice[:-2])
    assert choice[-1][1] == best
    assert choice[-1][3].startswith(apart)


def differences_from_zero(results):
    """The mean difference to p = 0 in each table of differences, by what its title says of trainings."""
    tables = [t for t in ContentShareOfTexts().report(results, "cpu").tables if "less that of each" in t.title]
    of_zero = [next(row for row in table.cells() if row[0] == "shares(0)") for table in tables]
    return {table.title.partition(" (")[2]: row[-1][:6] for table, row in zip(tables, of_zero, strict=True)}


def test_trainings_are_compared_by_their_mean_and_each_by_itself():
    trials = ContentShareOfTexts().trials("cpu")
    results = [result(t, "shares" if t.settings["seed"] == 0 else "shares(0)", 50) for t in trials]
    assert differences_from_zero(results) == {
        "mean of both trainings)": "+0.000",
        "training 1)": "+0.150",
        "training 2)": "-0.150",
    }
    of_one = [each for each in results if each.trial.settings["seed"] == 0]
    assert differences_from_zero(of_one) == {"training 1)": "+0.150"}  # one training has no mean
