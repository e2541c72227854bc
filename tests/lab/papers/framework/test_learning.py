from __future__ import annotations

import pytest
import torch

from unrolled.errors import DivergedError
from unrolled.lab.papers.framework.experiment import Bench
from unrolled.lab.papers.framework.synthetic_corpora import negation, topics
from unrolled.lab.papers.framework.trial_training import learn, learn_and_measure, learn_once

SMALL = {"hidden": 4, "embedding": 4}
SHORT = {"epochs": 1, "batch": 16}


def make_bench(tmp_path, trial, said):
    room = tmp_path / trial
    room.mkdir()
    return Bench(room, None, tmp_path / "shelf", said.append)


def test_what_one_trial_trained_another_opens(tmp_path):
    said = []
    first = learn_once(make_bench(tmp_path, "one", said), "classify", topics(), SMALL, SHORT)
    assert len(said) == 1  # an epoch
    again = learn_once(make_bench(tmp_path, "two", said), "classify", topics(), SMALL, SHORT)
    assert len(said) == 1
    assert again.metrics == first.metrics
    for name, weight in first.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])


def test_another_seed_size_or_corpus_is_another_network(tmp_path):
    said = []
    runs = [
        learn_once(make_bench(tmp_path, str(number), said), "classify", corpus, model, training)
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


def test_two_that_train_the_same_at_once_leave_one_network(tmp_path, monkeypatch):
    said = []
    bench = make_bench(tmp_path, "one", said)
    from unrolled.lab.papers.framework import trial_training as learning

    learn = learning.learn

    def slow(*args, **kwargs):
        if not (bench.shelf.exists() and list(bench.shelf.iterdir())):
            monkeypatch.setattr(learning, "learn", learn)
            learn_once(make_bench(tmp_path, "other", said), "classify", topics(), SMALL, SHORT)
        return learn(*args, **kwargs)

    monkeypatch.setattr(learning, "learn", slow)
    run = learn_once(bench, "classify", topics(), SMALL, SHORT)
    assert len(said) == 2
    assert [run.folder] == list(bench.shelf.iterdir())
    assert not list(bench.room.iterdir())


def test_of_a_training_that_diverged_the_step_is_kept_and_not_where_it_lies(tmp_path):
    wild = {**SHORT, "epochs": 5, "optimiser": "sgd", "lr": 3e38, "clip": 0}
    with pytest.raises(DivergedError) as caught:
        learn(make_bench(tmp_path, "one", []), "classify", topics(), SMALL, wild)
    assert str(tmp_path) in str(caught.value)
    found = learn_and_measure(make_bench(tmp_path, "two", []), "classify", topics(), SMALL, wild)
    assert found.keys() == {"diverged"}
    assert found["diverged"].startswith("step ")
    assert "expected finite numbers" not in found["diverged"]
    assert str(tmp_path) not in found["diverged"]
