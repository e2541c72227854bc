"""Relations with and without markers: pairs of trials and their table."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.implicit_ngrams import table4
from unrolled.lab.papers.ours.relation_markers import PUBLISHED, RelationMarkers


@pytest.mark.parametrize("scale", ["cpu", "day", "paper"])
def test_a_model_with_markers_and_its_pair_without_differ_in_nothing_else(scale):
    trials = [dict(trial.settings) for trial in RelationMarkers().trials(scale)]
    assert [each.pop("markers") for each in trials] == [True, False] * (len(trials) // 2)
    assert trials[::2] == trials[1::2]


def test_f1_with_and_without_markers_stands_beside_the_published_one():
    experiment = RelationMarkers()
    results = [
        Result(trial, {"dev_f1": 0.7, "test_f1": 0.8 if trial.settings["markers"] else 0.6}, 1.0, "", "", "", {})
        for trial in experiment.trials("cpu")
        if (trial.settings["model"], trial.settings["markers"]) != ("MVM-G", True)
    ]
    (table,) = experiment.report(results, "cpu").tables
    rows = {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.cells()}
    assert rows["GRU"]["test, with"] == "80.0"
    assert rows["GRU"]["test, without"] == "60.0"
    assert rows["GRU"]["test, published"] == "62.2"
    assert rows["MVM-G"]["test, with"] == "–"


def test_the_published_f1_of_relations_is_that_of_table_4():
    assert {model: table4.PUBLISHED[model][:2] for model in PUBLISHED} == PUBLISHED
