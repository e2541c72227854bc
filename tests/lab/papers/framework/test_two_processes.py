"""Two processes in one results folder: every trial runs once, and every line is whole."""

from __future__ import annotations

import json
import multiprocessing
import time

import pytest

from unrolled.lab.papers.framework import budget_queue, runner, trial_training
from unrolled.lab.papers.framework.budget_queue import run_queue
from unrolled.lab.papers.framework.runner import run_experiment
from unrolled.lab.papers.framework.synthetic_corpora import topics
from unrolled.lab.papers.framework.trial_training import train_once
from unrolled.lab.training.run_lock import InUseError, RunLock


def run(experiment, store, queue):
    if queue:
        run_queue([experiment], "cpu", store, hours=0.01, command="c", progress=Silent())
    else:
        run_experiment(experiment, "cpu", store, command="c")


class Silent:
    def trial(self, *_, **__):
        pass

    def say(self, _):
        pass


@pytest.mark.parametrize("queue", [False, True])
def test_each_trial_runs_once(store, arithmetic, monkeypatch, queue):
    class Slow(arithmetic.Squares):
        def run(self, trial, setup):
            with (store.folder / "began").open("a") as file:
                file.write(f"{trial.label}\n")
            time.sleep(0.02)
            return super().run(trial, setup)

    for module in (runner, budget_queue):
        monkeypatch.setattr(module, "PAUSE", 0.02)
    store.folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=run, args=(Slow(), store, queue)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert [each.exitcode for each in both] == [0, 0]
    began = (store.folder / "began").read_text().split()
    records = [json.loads(line) for line in store.path(Slow.name).read_text().splitlines()]
    assert sorted(began) == sorted(record["label"] for record in records) == [f"n={n}" for n in range(1, 9)]
    assert not list(store.folder.rglob("*.work"))


def test_a_trial_whose_process_died_is_taken_over_and_one_that_runs_is_awaited(store, arithmetic, monkeypatch):
    squares = arithmetic.Squares()
    trials = squares.trials("smoke")
    held = RunLock.acquire_new(store.work_folder(squares, "smoke", trials[0]))
    with pytest.raises(InUseError, match="is being written by process"):
        runner.run_trial(squares, "smoke", trials[0], store, command="c")
    monkeypatch.setattr(runner.time, "sleep", lambda _: held.release())  # it ends while it is waited for
    found = run_experiment(squares, "smoke", store, command="c")
    assert squares.ran == [2, 3, 1]
    assert [result["square"] for result in found] == [1, 4, 9]


@pytest.mark.parametrize("queue", [False, True])
def test_a_network_in_training_is_passed_over_and_comes_back(store, arithmetic, monkeypatch, queue):
    """Odd trials share a network that another process trains; even ones share none."""

    class Shares(arithmetic.Squares):
        def run(self, trial, setup):
            if trial.settings["n"] % 2:
                train_once(setup, "classify", topics(), {"hidden": 2, "embedding": 2}, {"epochs": 1})
            return super().run(trial, setup)

    shares, slept = Shares(), []
    held = []
    real = trial_training.RunLock.acquire_new

    def held_by_another(folder, *run):
        if folder.suffix == ".lock" and not held:
            held.append(real(folder))
        return real(folder, *run)

    def sleep(_):
        slept.append(list(shares.ran))
        held[0].release()

    monkeypatch.setattr(trial_training.RunLock, "acquire_new", held_by_another)
    for module in (runner, budget_queue):
        monkeypatch.setattr(module.time, "sleep", sleep)
    run(shares, store, queue)
    assert slept == [[2, 4, 6, 8]]
    assert sorted(shares.ran) == list(range(1, 9))
    assert len(list(store.networks.iterdir())) == 1
