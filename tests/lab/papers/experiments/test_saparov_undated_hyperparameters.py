"""CS 577, lecture 5, hyperparameters: one setting moves at a time, and the best is chosen on dev."""

from __future__ import annotations

from collections import Counter

import pytest

from unrolled.lab.papers.cs577_lecture_5 import hyperparameters as module
from unrolled.lab.papers.cs577_lecture_5.hyperparameters import Hyperparameters
from unrolled.lab.papers.framework.experiment import Bench, Result

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
    for task, values in module._VALUES[scale].items():
        for name, several in values.items():
            assert {each[name] for each in trials if each["task"] == task} == set(several)


def result(trial, dev, test=0.5):
    return Result(trial, {"dev": dev, "test": test}, 0.0, "", "", "", {})


def made_up(of):
    return [result(trial, *of(trial.settings)) for trial in Hyperparameters().trials("smoke")]


def test_the_best_setting_is_chosen_on_dev_whatever_test_says():
    results = made_up(lambda chosen: (0.9, 0.1) if chosen["lr"] == 0.003 else (0.6, 0.99))
    for task in ("classify", "rank"):
        (best,) = module._best(results, task, "gru")
        assert best.trial.settings["lr"] == 0.003
        assert best["test"] == 0.1


def test_models_are_read_as_they_are_compared(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "learn", lambda _, task, __, model, training: seen.append((task, model, training)))
    monkeypatch.setattr(
        module, "figures", lambda _: dict.fromkeys(("dev_accuracy", "test_accuracy", "dev_mrr", "test_mrr"), 0.5)
    )
    for trial in Hyperparameters().trials("smoke")[:6]:
        assert Hyperparameters().run(trial, Bench(tmp_path, None, tmp_path)) == {"dev": 0.5, "test": 0.5}
    pooled = {(task, model["encoder"]): model["pooling"] for task, model, _ in seen}
    assert pooled == {(task, name): "max" if name == "cnn" else "last" for task, name in pooled}
    assert len(pooled) == 6
    assert all(not model["overlap"] and not model["bidirectional"] for task, model, _ in seen if task == "rank")
    assert all(training["lr"] == 0.01 and training["batch"] == 16 for _, _, training in seen)
