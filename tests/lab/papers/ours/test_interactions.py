"""Interactions of words: its trials and its tables."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.faithfulness import Faithfulness
from unrolled.lab.papers.ours.interactions import Interactions


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_its_networks_are_those_of_faithfulness_and_read_forward(scale):
    theirs = {trial.settings["network"]: trial.settings["trained"] for trial in Faithfulness().trials(scale)}
    for trial in Interactions().trials(scale):
        assert trial.settings["trained"] == theirs[trial.settings["network"]]
        assert not trial.settings["trained"].get("bidirectional")


def test_a_score_that_a_network_does_not_have_has_no_row_and_an_index_is_not_compared_with_itself():
    kinds = ("neighbours", "all pairs", "negators", "intensifiers", "expected", "strongest")
    found = {kind: [0.25, 0.125, 0.5] for kind in kinds}
    both = {"index by deletion": found, "index by <unk>": found}
    results = []
    for trial in Interactions().trials("cpu"):
        scores = {"index by deletion": both, "secant, change": both}
        if "GRU" not in trial.label:
            scores["contextual decomposition"] = both
        values = {"accuracy": 0.8, "sentences": 9, "pairs": 90, "planted": 216, "scores": scores, "missing": {}}
        results.append(Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {}))
    tables = Interactions().report(results, "cpu").tables
    assert len(tables) == 7
    rows = [[row[0] for row in table.cells()] for table in tables]
    assert rows[0] == ["index by deletion", "secant, change"]
    assert rows[2] == ["index by deletion", "secant, change", "contextual decomposition"]
    first, second = list(tables[0].cells())
    assert first[1] == first[3] == "–"
    assert second[1] == "0.250 ± 0.000 (0.125 to 0.500)"
    assert next(iter(tables[1].cells()))[1] == "25 ± 0 (12 to 50)"
