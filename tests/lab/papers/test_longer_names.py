"""Names learned for twice the epochs: nothing else differs from the other item, and the published numbers are those."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.implicit_ngrams.longer_names import LongerNames
from unrolled.lab.papers.implicit_ngrams.names_of_code import EntitiesOfCode


@pytest.mark.parametrize("scale", ["smoke", "cpu", "day", "paper"])
def test_a_trial_is_one_of_the_other_item_with_twice_the_epochs(scale):
    others = [dict(trial.settings) for trial in EntitiesOfCode().trials(scale)]
    trials = LongerNames().trials(scale)
    assert {each.settings["network"] for each in trials} == ({"GRU"} if scale == "smoke" else {"LSTM", "MVMA-L", "GRU"})
    for trial in trials:
        chosen = dict(trial.settings)
        assert chosen.pop("network") == chosen["model"]
        assert chosen.pop("changed") == f"{chosen['epochs']} epochs"
        assert chosen not in others  # the control
        assert {**chosen, "epochs": chosen["epochs"] // 2} in others


def test_f1_stands_beside_the_published_one_of_names():
    experiment = LongerNames()
    values = {"dev_f1": 0.75, "test_f1": 0.66, "best_epoch": 90}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")]
    (table,) = experiment.report(results, "day").tables
    assert table.cells() == [
        ["LSTM", "100 epochs", "75.0 (76.3)", "66.0 (68.1)", "90"],
        ["MVMA-L", "100 epochs", "75.0 (75.6)", "66.0 (67.9)", "90"],
        ["GRU", "100 epochs", "75.0 (75.6)", "66.0 (67.9)", "90"],
    ]
