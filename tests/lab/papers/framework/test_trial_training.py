from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from functools import partial

import pytest
import torch

from unrolled.errors import DivergedError
from unrolled.lab.papers.framework import trial_training
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation, topics
from unrolled.lab.papers.framework.trial_training import train_and_measure, train_model, train_once
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.run_lock import InUseError

SMALL = {"hidden": 4, "embedding": 4}
SHORT = {"epochs": 1, "batch": 16}


class SteppingClock(Callback):
    """Lets a step take so many seconds; it is told of a step after the log is."""

    def __init__(self, now, seconds):
        self.now, self.seconds, self.steps = now, seconds, 0

    def on_step(self, step):
        self.now[0] += self.seconds
        self.steps += 1


def make_setup(tmp_path, trial, said):
    room = tmp_path / trial
    room.mkdir()
    return TrialSetup(room, None, tmp_path / "networks", said.append)


def test_what_one_trial_trained_another_opens(tmp_path):
    said = []
    first = train_once(make_setup(tmp_path, "one", said), "classify", topics(), SMALL, SHORT)
    assert len(said) == 1  # an epoch
    again = train_once(make_setup(tmp_path, "two", said), "classify", topics(), SMALL, SHORT)
    assert len(said) == 1
    assert again.metrics == first.metrics
    for name, weight in first.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])


@pytest.mark.parametrize("seconds", [16.0, 45.0, 61.0])
def test_within_an_epoch_there_is_a_line_a_minute(tmp_path, monkeypatch, seconds):
    now, said = [0.0], []
    setup = make_setup(tmp_path, "one", said)
    listened = SteppingClock(now, seconds)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    train_model(replace(setup, listener=listened), "classify", topics(), SMALL, {**SHORT, "batch": 4})
    within = [line for line in said if "batch" in line]
    steps_a_line = math.ceil(60.0 / seconds)
    assert len(within) == (listened.steps - 1) // steps_a_line
    assert within
    assert all(line.startswith("epoch 1  loss ") for line in within)


def test_another_seed_size_or_corpus_is_another_network(tmp_path):
    said = []
    runs = [
        train_once(make_setup(tmp_path, str(number), said), "classify", corpus, model, training)
        for number, (corpus, model, training) in enumerate(
            [
                (topics(), SMALL, SHORT),
                (topics(), SMALL, {**SHORT, "seed": 1}),
                (topics(), {**SMALL, "hidden": 5}, SHORT),
                (topics(seed=1), SMALL, SHORT),
                (negation(), SMALL, SHORT),
            ]
        )
    ]
    assert len(said) == len({run.folder for run in runs}) == 5


def test_other_word_vectors_in_the_same_file_are_another_network(tmp_path):
    vectors, said = tmp_path / "vectors.txt", []
    folders = []
    for trial, numbers in enumerate(["0.5 0.1 0.2 0.3", "0.5 0.1 0.2 0.3", "-0.5 0.1 0.2 0.3"]):
        vectors.write_text("".join(f"{word} {numbers}\n" for word in topics().train[0].tokens))
        setup = make_setup(tmp_path, str(trial), said)
        folders.append(train_once(setup, "classify", topics(), SMALL, {**SHORT, "vectors": vectors}).folder)
    assert folders[0] == folders[1] != folders[2]


def test_a_network_is_known_by_every_split_and_label_and_not_by_where_they_were_read(tmp_path):
    corpus = topics()
    reversed_labels = tuple(reversed(corpus.labels))
    others = [replace(corpus, **{split: getattr(corpus, split)[1:]}) for split in ("train", "dev", "test")]
    others.append(replace(corpus, labels=reversed_labels))
    elsewhere = tuple(replace(each, origin=("elsewhere.csv", 3)) for each in corpus.test)
    same = replace(corpus, test=elsewhere, notes=("of another folder",))
    runs = [
        train_once(make_setup(tmp_path, str(number), []), "classify", each, SMALL, SHORT)
        for number, each in enumerate([corpus, *others, same])
    ]
    assert len({run.folder for run in runs}) == 5
    assert runs[0].folder == runs[-1].folder
    sizes = [json.loads((run.folder / "config.json").read_text())["examples"]["test"] for run in runs]
    assert sizes == [len(each.test) for each in [corpus, *others, same]]  # test metrics are those of one's own test


def test_a_network_that_is_being_trained_is_refused_and_then_opened(tmp_path, monkeypatch):
    said, refused = [], []

    def meanwhile(*args, **kwargs):
        other = make_setup(tmp_path, "other", said)
        with pytest.raises(InUseError) as caught:
            train_once(other, "classify", topics(), SMALL, SHORT)
        refused.append(caught.value)
        assert caught.value.in_use
        assert not list(other.folder.iterdir())
        monkeypatch.setattr(trial_training, "train_model", train_model)
        train_once(other, "classify", topics(), SMALL, {**SHORT, "seed": 1})  # another network is free
        return train_model(*args, **kwargs)

    setup = make_setup(tmp_path, "one", said)
    monkeypatch.setattr(trial_training, "train_model", meanwhile)
    run = train_once(setup, "classify", topics(), SMALL, SHORT)
    assert not refused[0].in_use
    again = train_once(replace(setup, folder=tmp_path / "other"), "classify", topics(), SMALL, SHORT)
    assert again.folder == run.folder
    assert len(said) == len(list(setup.networks.iterdir())) == 2
    assert not list(setup.folder.iterdir())


def test_a_process_killed_while_it_trains_a_network_blocks_nobody(tmp_path):
    setup = make_setup(tmp_path, "one", [])

    class Killed(Callback):
        def on_step(self, step):
            os.kill(os.getpid(), signal.SIGKILL)

    train = partial(train_once, replace(setup, listener=Killed()), "classify", topics(), SMALL, SHORT)
    process = multiprocessing.get_context("fork").Process(target=train)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert [path.suffix for path in setup.networks.iterdir()] == [".lock"]  # it had begun
    run = train_once(make_setup(tmp_path, "two", []), "classify", topics(), SMALL, SHORT)
    assert list(setup.networks.iterdir()) == [run.folder]


def test_of_a_training_that_diverged_the_step_is_kept_and_not_where_it_lies(tmp_path):
    wild = {**SHORT, "epochs": 5, "optimiser": "sgd", "lr": 3e38, "clip": 0}
    with pytest.raises(DivergedError) as caught:
        train_model(make_setup(tmp_path, "one", []), "classify", topics(), SMALL, wild)
    assert str(tmp_path) in str(caught.value)
    found = train_and_measure(make_setup(tmp_path, "two", []), "classify", topics(), SMALL, wild)
    assert found.keys() == {"diverged"}
    assert found["diverged"].startswith("step ")
    assert "expected finite numbers" not in found["diverged"]
    assert str(tmp_path) not in found["diverged"]
