"""What stops a training, or does not let it begin."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import pytest
import torch

from toy_tasks import DATA, Carry, Watching, carry, settings, stream, weights
from unrolled.errors import DataError, DivergedError, UsageError
from unrolled.lab.data.corpus import TaggedSentence, Tagging
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.task import Loss


class Broken(Carry):
    """A task that breaks at a step: its loss, one of its gradients, or a parameter."""

    what = "loss"
    at = 7

    def loss(self, model, batch, state):
        found = super().loss(model, batch, state)
        self.count = getattr(self, "count", 0) + 1
        if self.count < self.at:
            return found
        if self.what == "loss":
            return Loss(found.total * math.nan, found.count, found.state)
        if self.what == "parameter":
            with torch.no_grad():
                model.head.bias[1] = math.inf
            return Loss(super().loss(model, batch, state).total, found.count, found.state)
        # its value is 0 and its slope at 0 is infinite
        return Loss(found.total + (model.head.bias[2] * 0).abs().sqrt(), found.count, found.state)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("loss", r"the loss is nan;"),
        ("parameter", r"the loss is nan, since the parameter head\.bias is not finite;"),
        ("gradient", r"the gradient of head\.bias is not finite;"),
    ],
)
def test_what_is_not_finite_stops_the_training_at_that_step_and_the_last_checkpoint_goes_on(tmp_path, what, message):
    task = Broken(Carry.Architecture(hidden=6, embedding=4))
    task.what = what
    corpus = stream()
    chosen = settings(batch=4, checkpoint_every=2, epochs=1, log_every=1)
    watching = Watching()
    with pytest.raises(DivergedError, match=rf"step 7 of epoch 1: {message} try a learning rate below") as caught:
        train(task, corpus, chosen, tmp_path / "run", data=DATA, callback=watching)
    assert caught.value.exit_code == 70
    assert "\n" not in str(caught.value)
    assert "learning rate below 0.03" in str(caught.value)
    assert [step.number for step in watching.steps] == list(range(1, 7))
    healed = resume(tmp_path / "run", corpus, task_class=Carry)
    whole = train(carry(dropout=0.5), corpus, chosen, tmp_path / "whole", data=DATA)
    assert torch.equal(weights(healed), weights(whole))


def test_a_parameter_that_is_not_finite_is_never_saved(tmp_path):
    class Late(Carry):
        def loss(self, model, batch, state):
            found = super().loss(model, batch, state)
            if self.calls == 3:
                with torch.no_grad():
                    model.rare[0] = math.nan  # no batch reads it
            self.calls += 1
            return found

    task = Late(Carry.Architecture(hidden=6, embedding=4))
    task.calls = 0
    with pytest.raises(DivergedError, match=r"step 4 of epoch 1: the parameter rare is not finite"):
        train(task, stream(), settings(batch=4, checkpoint_every=2), tmp_path / "run", data=DATA)
    assert [path.name[:14] for path in sorted((tmp_path / "run" / "checkpoints").iterdir())] == [
        "step-000000000",
        "step-000000002",
    ]


def test_mixed_precision_is_for_gpus(task, corpus, tmp_path):
    with pytest.raises(UsageError, match="precision is bf16 on a CPU, but mixed precision needs a GPU; set it to full"):
        train(task, corpus, settings(precision="bf16"), tmp_path / "run", data=DATA)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_is_named(task, corpus, tmp_path):
    with pytest.raises(UsageError, match=r"device is cuda:3, but this machine has 0 visible GPUs"):
        train(task, corpus, settings(device="cuda:3"), tmp_path / "run", data=DATA)


def test_a_split_that_cannot_be_learned_from_is_named_and_leaves_nothing(task, corpus, tmp_path):
    with pytest.raises(DataError, match="told, dev: a split has no examples"):
        train(task, replace(corpus, dev=()), settings(), tmp_path / "run", data=DATA)
    assert list(tmp_path.iterdir()) == []


def test_a_run_goes_on_only_with_its_own_corpus_and_as_many_processes(task, corpus, tmp_path):
    class Impatient(Callback):
        def on_step(self, _step):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(task, corpus, settings(), tmp_path / "run", data=DATA, callback=Impatient())
    with pytest.raises(DataError, match=r"run was started with other data: train: 1 of the 120 examples of before are"):
        resume(tmp_path / "run", replace(corpus, train=corpus.train[1:]))
    with pytest.raises(DataError, match="train: 1 of 120 examples are new"):  # as many examples, but others
        resume(tmp_path / "run", replace(corpus, train=(corpus.train[1], *corpus.train[1:])))
    config = tmp_path / "run" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "processes": 2, "checksum": None}))
    with pytest.raises(UsageError, match=r"was started with 2 processes, but this is a group of 1"):
        resume(tmp_path / "run", corpus)


class Begun(Callback):
    """Sees whether a step was ever made."""

    steps = 0

    def on_step(self, _step):
        self.steps += 1
        raise InterruptedError


@pytest.mark.parametrize(
    ("name", "module"),
    [("translate", "sacrebleu.metrics.bleu"), ("tag", "seqeval.metrics.v1"), ("tag", "torchcrf")],
)
def test_what_is_not_installed_is_found_out_before_the_first_step(tmp_path, monkeypatch, name, module):
    kind = TASKS.get(name)
    corpus = SYNTHETIC[kind.kind](SMALL, 0)
    learned = kind.from_corpus(corpus, kind.Architecture(hidden=8, embedding=8))
    callback = Begun()
    with pytest.raises(InterruptedError):  # installed: it begins
        train(learned, corpus, settings(), tmp_path / "run", data=DATA, callback=callback)
    monkeypatch.setitem(sys.modules, module, None)
    said = r"pip install ['\"]unrolled\[tasks\]"
    with pytest.raises(UsageError, match=said) as caught:
        train(learned, corpus, settings(), tmp_path / "other", data=DATA, callback=callback)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=said):
        resume(tmp_path / "run", corpus, callback=callback)
    assert callback.steps == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_tags_that_spell_no_entities_are_learned_without_what_counts_entities(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "seqeval.metrics.v1", None)
    monkeypatch.setitem(sys.modules, "torchcrf", None)
    words = TaggedSentence(("the", "cat", "ran"), ("DT", "NN", "VB"))
    corpus = Tagging(name="parts", spans=False, train=(words,) * 12, dev=(words,) * 2, test=(words,) * 2)
    kind = TASKS.get("tag")
    learned = kind.from_corpus(corpus, kind.Architecture(hidden=8, embedding=8, crf=False))
    assert "test_accuracy" in train(learned, corpus, settings(epochs=1), tmp_path / "run", data=DATA).metrics
