"""Agreement with phrase labels: trials and the earlier figures."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.phrases import FIRST, PhraseAgreement


def test_the_earlier_figures_are_all_there():
    assert {encoder: len(figures) for encoder, figures in FIRST.items()} == {"lstm": 8, "gru": 7}
    assert sum(FIRST["lstm"].values()) == pytest.approx(4.045)
    assert sum(FIRST["gru"].values()) == pytest.approx(3.852)


def test_what_needs_an_optional_library_comes_last_and_networks_are_shared_with_other_items():
    trials = PhraseAgreement().trials("cpu")
    groups = [trial.settings["group"] for trial in trials]
    assert groups.count("integrated gradients") == 2
    assert set(groups[-2:]) == {"integrated gradients"}
    assert groups[:2] == ["expansions"] * 2
    by_encoder = {trial.settings["model"]["encoder"]: trial.settings for trial in trials}
    for settings in by_encoder.values():
        assert settings["model"]["hidden"] == 128
        assert (settings["training"]["epochs"], settings["training"]["seed"]) == (3, 0)
    assert [trial.settings["model"]["encoder"] for trial in trials if "decomposition" in trial.label] == ["lstm"]


def test_what_was_added_later_is_measured_on_the_same_networks_at_scale_day():
    trials = PhraseAgreement().trials("day")
    later = [
        trial.settings for trial in trials if trial.settings["group"] in ("further methods", "relevance propagation")
    ]
    assert {"secant", "shares", "shares(0.5)", "account", "LRP"} <= {name for each in later for name in each["methods"]}
    assert all("LRP" not in each["methods"] for each in later if each["model"]["encoder"] == "gru")
    first = [trial.settings for trial in trials if trial.settings["group"] == "expansions"]
    networks = [[each["model"], each["training"]] for each in first]
    assert all([each["model"], each["training"]] in networks for each in later)
    assert len(trials) == 30
    assert len(PhraseAgreement().trials("cpu")) == 7


def test_a_score_is_compared_with_the_phrase_alone_on_the_seeds_that_both_have():
    def measured(value):
        spread = [value, value - 0.1, value + 0.1]
        return {
            "pearson": spread,
            "spearman": spread,
            "by_length": [spread] * 5,
            "cost": 1.0,
            "draws": [value, value + 0.1],
        }

    results = []
    for trial in PhraseAgreement().trials("day"):
        seed, group = trial.settings["training"]["seed"], trial.settings["group"]
        if group == "baselines":
            found = {"the phrase alone": measured(0.5 + 0.2 * seed)}
        elif group == "further methods" and seed == 1:
            found = {"secant": measured(0.6)}
        else:
            continue
        results.append(Result(trial, {"phrases": 9, "methods": found}, 1.0, "", "", "", {}))
    report = PhraseAgreement().report(results, "day")
    assert all(caption.endswith("; on fewer seeds: secant.") for caption in report.captions.values())
    tables = [table for table in report.tables if "less that of" in table.title]
    for table in tables:
        assert [list(row) for row in table.cells()] == [["secant", "-0.100", "-0.100 to -0.100"]]
    assert len(tables) == 2
