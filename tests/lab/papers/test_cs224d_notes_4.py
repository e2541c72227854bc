"""CS 224D, lecture notes IV: what each item measures."""

from __future__ import annotations

import math

import pytest
import torch

from unrolled.errors import UsageError
from unrolled.lab.papers.cs224d_notes_4.clipping_surface import ClippingSurface, error
from unrolled.lab.papers.cs224d_notes_4.deep import DeepBidirectional
from unrolled.lab.papers.cs224d_notes_4.gradients import Gradients
from unrolled.lab.papers.cs224d_notes_4.language import LanguageModels, distinct_ngrams
from unrolled.lab.papers.cs224d_notes_4.translation import FiveExtensions
from unrolled.lab.papers.framework.experiment import Trial, TrialSetup
from unrolled.lab.tasks.translate import TranslateSettings


@pytest.mark.parametrize(("w", "b"), [(5.0, -2.0), (4.2, -2.8), (6.5, -3.2)])
def test_the_error_is_that_of_one_unit_after_fifty_steps(w, b):
    h = 0.5
    for _ in range(50):
        h = w / (1 + math.exp(-h)) + b
    expected = (1 / (1 + math.exp(-h)) - 0.7) ** 2
    at = (torch.tensor(each, dtype=torch.float64) for each in (w, b))
    assert error(*at).item() == pytest.approx(expected, abs=1e-12)


def test_a_clipped_descent_stays_and_finds_what_an_unclipped_one_is_thrown_from(tmp_path):
    clipped, free = (
        ClippingSurface().run(
            Trial("a test", {"lattice": 7, "updates": 400, "rate": 0.1, "clip": clip}),
            TrialSetup(tmp_path, None, tmp_path / "networks"),
        )
        for clip in (1.0, None)
    )
    assert clipped["longest_step"] == pytest.approx(0.1)  # rate times threshold
    assert free["longest_step"] > 10
    assert clipped["steepest"] > 100
    assert clipped["found"] > free["found"]
    assert (clipped["w"][0], clipped["b"][0]) == (free["w"][0], free["b"][0])
    assert clipped["w"] != free["w"]


def trial(cell, **changes):
    (first, *_) = (
        trial
        for trial in Gradients().trials("smoke")
        if (trial.settings["cell"], trial.settings["optimiser"], trial.settings["clip"]) == (cell, "adam", 1.0)
    )
    return Trial(first.label, {**first.settings, **changes})


def test_gradients_vanish_in_a_sigmoid_network_and_not_in_a_rectifier_with_the_identity(tmp_path):
    arriving = {}
    for cell in ("sigmoid", "relu, identity"):
        found = Gradients().run(trial(cell), TrialSetup(tmp_path, None, tmp_path / "networks"))
        assert found["before"]["kept"]
        assert len(found["before"]["jacobian"]) == len(found["after"]["loss"]) == 17  # distances 0 to 16
        assert found["before"] != found["after"]
        assert set(found["accuracy"]) >= {"8", "12", "16"}
        arriving[cell] = found["before"]["jacobian"][12]
    assert arriving["sigmoid"] < 1e-6
    assert arriving["relu, identity"] > 0.5


def test_a_training_that_diverges_is_a_result_and_no_failure(tmp_path):
    wild = trial("relu, identity", optimiser="descent", rate=1e6, clip=None, steps=30)
    found = Gradients().run(wild, TrialSetup(tmp_path, None, tmp_path / "networks"))
    assert found["diverged"] is not None
    assert found["after"] is None
    assert found["accuracy"] is None


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_distinct_ngrams_are_those_of_the_running_text(order):
    lines = [["a", "b", "a"], ["b"], ["a", "b", "c"]]
    text = ["a", "b", "a", "b", "a", "b", "c"]
    found = [len({tuple(text[at : at + k]) for at in range(len(text) - k + 1)}) for k in range(1, order + 1)]
    assert distinct_ngrams(lines, order) == found


def language(tmp_path, told, **changes):
    trial = next(trial for trial in LanguageModels().trials("smoke") if trial.label == told)
    setup = TrialSetup(tmp_path, None, tmp_path / "networks")
    return LanguageModels().run(Trial(told, {**trial.settings, **changes}), setup)


def test_unsmoothed_counts_find_a_new_text_impossible_and_smoothed_ones_do_not(tmp_path):
    smoothed, counted = (language(tmp_path, f"3-grams, {told}") for told in ("Kneser-Ney", "as counted"))
    assert counted["test_perplexity"] is None
    assert 1 < smoothed["test_perplexity"] < smoothed["types"]
    assert counted["kept"] == smoothed["kept"] == sum(smoothed["grown"][-1][1:])
    texts = [each[0] for each in smoothed["grown"]]
    assert texts == sorted(texts)
    assert texts[-1] == smoothed["words"]


def test_what_a_network_keeps_grows_with_different_words_alone(tmp_path):
    texts = [[lines, 20, 20] for lines in (4, 160, 200)]
    few, many, all_ = (language(tmp_path, "RNN", lines=lines)["kept"] for lines in texts)
    counts = [language(tmp_path, "3-grams, Kneser-Ney", lines=lines) for lines in texts]
    types = [counted["types"] for counted in counts]
    assert types[0] < types[1] == types[2]
    assert few < many == all_
    assert counts[1]["kept"] < counts[2]["kept"]


def test_one_way_of_as_many_parameters_is_as_large_as_both_ways(tmp_path):
    trials = {trial.label: trial for trial in DeepBidirectional().trials("smoke")}
    setup = TrialSetup(tmp_path, None, tmp_path / "networks")
    both, one, wide = (
        DeepBidirectional().run(trials[f"tag, lstm, 1 layer, {ways}, seed 0"], setup)
        for ways in ("both ways", "one way", "one way, as many parameters")
    )
    assert one["parameters"] < wide["parameters"]
    assert wide["parameters"] == pytest.approx(both["parameters"], rel=0.1)
    assert wide["hidden"] > both["hidden"] == one["hidden"]


def test_each_extension_is_one_switch_and_the_base_has_none():
    switches = ("separate", "fed", "layers", "bidirectional", "reverse")
    models = {
        trial.settings["variant"].partition(":")[0]: [trial.settings["model"][name] for name in switches]
        for trial in FiveExtensions().trials("cpu")
    }
    base = models["base"]
    assert base == [False, False, 1, False, False]
    changed = {name: [now != before for now, before in zip(each, base, strict=True)] for name, each in models.items()}
    for place, name in enumerate(("I", "II", "III", "I and IV", "V")):
        expected = [each == place or (name == "I and IV" and each == 0) for each in range(5)]
        assert changed[name] == expected
    assert changed["all five"] == [True] * 5
    assert len(models) == 7
    for trial in FiveExtensions().trials("cpu"):
        TranslateSettings(**trial.settings["model"])  # such a model there is; IV without I is refused
    with pytest.raises(UsageError, match="bidirectional is True, but separate is False"):
        TranslateSettings(separate=False, bidirectional=True)
