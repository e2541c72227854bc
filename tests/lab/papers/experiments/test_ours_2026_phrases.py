"""Our question of phrases: the earlier figures as they were written down, and sentences that follow the figures."""

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


def results(**correlations):
    """Results of one LSTM whose scores agree as they are told to, the same in every resample but for a little."""
    trials = [trial for trial in PhraseAgreement().trials("cpu") if trial.settings["model"]["encoder"] == "lstm"]
    found = []
    for trial in trials:
        methods = {}
        for method in trial.settings["methods"]:
            value = correlations.get(method, 0.3)
            told = [value, value - 0.01, value + 0.01]
            methods[method] = {
                "pearson": told, "spearman": told, "by_length": [told] * 4 + [None], "cost": 2.0,
                "draws": [value - 0.01, value, value + 0.01],
                **({"ngram": told, "error": [0.0, 0.0]} if trial.settings["group"] == "expansions" else {}),
            }  # fmt: skip
        values = {"sentences": 400, "phrases": 7000, "accuracy": 0.85, "methods": methods}
        found.append(Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {}))
    return found


def test_the_findings_follow_the_figures():
    settled = "mean(operating, path)"
    good = (
        PhraseAgreement()
        .report(results(**{**FIRST["lstm"], "path": 0.6, "operating": 0.7, settled: 0.65}), "cpu")
        .findings
    )
    assert f"LSTM: {settled}, on which we had settled before, agrees at 0.650; better than integrated gra" in good[0]
    assert "1.0 times its cost" in good[0]
    assert "better than contextual decomposition, at the phrase's end, 0.300" in good[0]
    assert "operating is highest on these phrases, 0.700. It was found so on the same phrases" in good[1]
    assert "of 8 earlier correlations 5 lie in our intervals; not operating 0.700 (at first 0.519); path" in good[3]
    bad = PhraseAgreement().report(results(**{settled: 0.4, "integrated gradients": 0.5}), "cpu").findings
    assert "agrees at 0.400; worse than integrated gradients, 0.500" in bad[0]
    assert "better than zero, 0.300" in bad[0]
    same = PhraseAgreement().report(results(), "cpu").findings
    assert "not to be told from integrated gradients" in same[0]
    assert "otherwise than at first" in same[2]
    like = PhraseAgreement().report(results(**dict.fromkeys(("zero", "path"), 0.16)), "cpu")
    assert "0.16 to 0.30" in like.findings[2]
