"""CS 577, lecture 5: what each item measures, with controls that must fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest
import torch
from torch import nn

from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.softmax import FullSoftmax
from unrolled.lab.papers.analyses.sentences.text_properties import prose_properties, python_properties
from unrolled.lab.papers.cs577_lecture_5 import cells, cells_texts
from unrolled.lab.papers.cs577_lecture_5 import hyperparameters as hyperparameters
from unrolled.lab.papers.cs577_lecture_5.agreement import Agreement
from unrolled.lab.papers.cs577_lecture_5.cells import InterpretableUnits
from unrolled.lab.papers.cs577_lecture_5.hyperparameters import Hyperparameters
from unrolled.lab.papers.cs577_lecture_5.memorising import MemorisingRecall
from unrolled.lab.papers.framework.experiment import Result, Trial, TrialSetup
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings


def run(experiment, tmp_path, **settings):
    return experiment.run(Trial("a test", settings), TrialSetup(tmp_path, None, tmp_path / "networks"))


@pytest.mark.parametrize(("length", "words"), [(1, 1), (2, 2), (7, 3), (16, 100)])
def test_the_memorising_network_recalls_every_number_to_the_last_bit(length, words, tmp_path):
    found = run(MemorisingRecall(), tmp_path, length=length, words=words, factor=1.0, texts=20, seed=1)
    assert found["exact"] == found["recalled"] == found["whole"] == 1
    assert found["by_age"] == [1] * length


def test_one_weight_disturbed_and_what_passes_it_is_lost(tmp_path):
    settings = {"length": 8, "words": 9, "texts": 20, "seed": 1}
    little, turned = (run(MemorisingRecall(), tmp_path, factor=factor, **settings) for factor in (0.999, -1.0))
    assert little["exact"] == turned["exact"] == 0.5  # the words that have not reached the weight yet
    assert little["recalled"] == 1  # though not a number for number
    assert turned["by_age"] == [1] * 4 + [0] * 4
    assert turned["whole"] == 0


SETTINGS = {
    "sentences": 1500, "epochs": 5, "longest": 4, "tested": 100, "hidden": 32, "batch": 32, "rate": 0.01,
    "clip": 1.0, "seed": 0,
}  # fmt: skip


def test_counts_know_the_number_beside_the_subject_and_guess_beyond_their_window(tmp_path):
    found = run(Agreement(), tmp_path, model="3-gram counts", **{**SETTINGS, "sentences": 5000})
    assert found["right"][0] > 0.95
    assert 0.3 < fmean(found["right"][3:]) < 0.7
    assert fmean(share for share in found["misled"][3:] if share is not None) < 0.4  # they follow the nearest noun
    assert all(asked <= 100 for asked in found["asked"])


def test_a_gated_network_learns_agreement_where_counts_are_misled(tmp_path):
    trained = run(Agreement(), tmp_path, model="GRU", **SETTINGS)
    assert fmean(trained["right"][:5]) > 0.9
    untrained = run(Agreement(), tmp_path, model="GRU", **{**SETTINGS, "epochs": 0})
    assert 0.3 < fmean(untrained["right"][:5]) < 0.7


HIDDEN = 3
OPEN, SHUT = 20.0, -20.0  # σ of it is 1, or 0, in float32
COUNTS, COMMENTS = 1, 2


def by_hand(vocabulary):
    """Set an LSTM whose memory 1 counts characters up to a line's end, and whose memory 2 holds from # to there."""
    end, sharp = vocabulary.encode("\n#")
    embedding = nn.Embedding(len(vocabulary), 3)
    embedding.weight.data = torch.tensor([0.0, 0.0, 1.0]).repeat(len(vocabulary), 1)
    embedding.weight.data[end] = torch.tensor([1.0, 0.0, 0.0])
    embedding.weight.data[sharp] = torch.tensor([0.0, 1.0, 0.0])
    lstm = nn.LSTM(3, HIDDEN, batch_first=True)
    for parameter in lstm.parameters():
        nn.init.zeros_(parameter)
    weight = torch.zeros(4, HIDDEN, 3)  # gates i, f, g, o; what they do at a line's end, at # and elsewhere
    weight[:, COUNTS] = torch.tensor([[SHUT, -5, -5], [SHUT, OPEN, OPEN], [OPEN] * 3, [OPEN] * 3])
    weight[:, COMMENTS] = torch.tensor([[SHUT, OPEN, SHUT], [SHUT, SHUT, OPEN], [OPEN] * 3, [OPEN] * 3])
    lstm.weight_ih_l0.data = weight.flatten(0, 1)
    return LanguageModel(embedding, lstm, FullSoftmax(HIDDEN, len(vocabulary))).eval()


def find(trained=True, text="python", encoder="lstm"):
    wanted = {"trained": trained, "text": text, "encoder": encoder}
    trials = InterpretableUnits().trials("smoke")
    return next(trial for trial in trials if {name: trial.settings[name] for name in wanted} == wanted)


@pytest.fixture
def trial_setup(tmp_path):
    return TrialSetup(tmp_path / "room", None, tmp_path / "networks")


def test_cells_set_by_hand_are_found_and_measured(trial_setup, monkeypatch):
    def network(corpus, *_):
        task = CharacterModelling.from_corpus(corpus, CharacterModelSettings(hidden=HIDDEN, embedding=3))
        return by_hand(task.vocabulary), task.vocabulary, 2.0

    monkeypatch.setattr(cells, "load_network", network)
    trial = find()
    trial = replace(trial, settings={**trial.settings, "hidden": HIDDEN, "columns": 20, "width": 200, "lead": 100})
    values = InterpretableUnits().run(trial, trial_setup)
    found = values["found"]
    assert found["position in line"]["unit"] == "c 1"
    assert found["position in line"]["correlation"] > 0.999
    assert found["inside a comment"]["unit"].split()[1] == "2"  # its memory and its hidden output tell the same
    assert found["inside a comment"]["correlation"] > 0.9  # a # in a string misleads it
    assert found["inside a comment"]["auc"] > 0.95
    assert found["inside an if"]["correlation"] < 0.5  # nothing in it knows of that
    assert found["position in line"]["auc"] is None
    assert 0 < values["clear"] <= 4 / 6  # both units, memory and output; not those without weights
    lines = cells_texts.PYTHON_FRAGMENT.split("\n")
    commented = [line.index("#") for line in lines if "#" in line]
    drawn = iter(found["inside a comment"]["drawn"])
    shown = [[next(drawn) for _ in f"{line}\n"] for line in lines[:-1]]
    assert [max(values[:-1]) > 0.5 for values in shown] == ["#" in line for line in lines[:-1]]
    assert len(commented) == 2
    assert next(drawn, None) is None  # a value for every character that is drawn


def test_the_control_is_what_the_trained_network_was_before(trial_setup):
    trial = find()
    corpus = cells_texts.one_package()
    model, words, bits = cells.load_network(corpus, {**trial.settings, "trained": False}, trial_setup)
    assert bits is None
    trained, same_words, bits = cells.load_network(corpus, {**trial.settings, "steps": 1, "lr": 1e-12}, trial_setup)
    assert bits > 5
    assert words == same_words
    for one, other in zip(model.parameters(), trained.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_our_own_text_has_all_that_is_drawn():
    told = python_properties(cells_texts.PYTHON_FRAGMENT)
    assert all(len(Counter(values.tolist())) > 1 for values in told.values())
    assert prose_properties(cells_texts.PROSE_FRAGMENT)["inside quotes"][-1] == 0


MOVED = ("lr", "hidden", "batch")


@pytest.mark.parametrize("scale", Hyperparameters.scales)
def test_one_setting_is_moved_at_a_time_and_the_middle_comes_first(scale):
    trials = [trial.settings for trial in Hyperparameters().trials(scale) if trial.settings["seed"] == 0]
    first = trials[:6]
    assert {(each["task"], each["model"]) for each in first} == {
        (task, model) for task in ("classify", "rank") for model in ("lstm", "gru", "cnn")
    }
    middle = {each["task"]: each for each in first}
    moved = Counter(sum(each[name] != middle[each["task"]][name] for name in MOVED) for each in trials)
    assert set(moved) == {0, 1}
    assert moved[0] == 6
    for task, values in hyperparameters.VALUES[scale].items():
        for name, several in values.items():
            assert {each[name] for each in trials if each["task"] == task} == set(several)


def result(trial, dev, test=0.5):
    return Result(trial, {"dev": dev, "test": test}, 0.0, "", "", "", {})


def hyperparameter_results(of):
    return [result(trial, *of(trial.settings)) for trial in Hyperparameters().trials("smoke")]


def test_the_best_setting_is_chosen_on_dev_whatever_test_says():
    results = hyperparameter_results(lambda chosen: (0.9, 0.1) if chosen["lr"] == 0.003 else (0.6, 0.99))
    for task in ("classify", "rank"):
        (best,) = hyperparameters.best_results(results, task, "gru")
        assert best.trial.settings["lr"] == 0.003
        assert best["test"] == 0.1


def test_models_are_read_as_they_are_compared(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        hyperparameters, "train_model", lambda _, task, __, model, training: seen.append((task, model, training))
    )
    monkeypatch.setattr(
        hyperparameters,
        "run_metrics",
        lambda _: dict.fromkeys(("dev_accuracy", "test_accuracy", "dev_mrr", "test_mrr"), 0.5),
    )
    for trial in Hyperparameters().trials("smoke")[:6]:
        assert Hyperparameters().run(trial, TrialSetup(tmp_path, None, tmp_path)) == {"dev": 0.5, "test": 0.5}
    pooled = {(task, model["encoder"]): model["pooling"] for task, model, _ in seen}
    assert pooled == {(task, name): "max" if name == "cnn" else "last" for task, name in pooled}
    assert len(pooled) == 6
    assert all(not model["overlap"] and not model["bidirectional"] for task, model, _ in seen if task == "rank")
    assert all(training["lr"] == 0.01 and training["batch"] == 16 for _, _, training in seen)
