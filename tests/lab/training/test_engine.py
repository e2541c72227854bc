"""What a training does, for any task."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
import torch
from torch import nn

from toy_tasks import DATA, Carry, Watching, carry, classify, settings, stream, weights
from unrolled.errors import DataError, UsageError
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.task import Loss, Metric, Task


class Scripted(Task):
    """A task that learns nothing and measures what it was told to, one value an epoch."""

    name = "scripted"
    description = "nothing"
    kind = object
    Architecture = Carry.Architecture
    metrics = (Metric("first", "what counts", higher_is_better=False), Metric("second", "what breaks ties"))

    def __init__(self, script, corpus):
        super().__init__(Carry.Architecture())
        self.script, self.splits, self.asked = script, classify(corpus), 0

    @classmethod
    def from_corpus(cls, corpus, architecture):
        raise NotImplementedError

    from_record = from_corpus

    def to_record(self):
        return {}

    def build(self):
        model = nn.Linear(2, 1)
        model.register_buffer("steps", torch.tensor(0))
        return model

    def encode(self, examples):
        return self.splits.encode(examples)

    def loss(self, model, batch, state):
        model.steps += 1
        return Loss(model(torch.ones(len(batch), 2)).square().sum(), len(batch), state)

    def compute_metrics(self, model, batches):
        assert not model.training
        assert not torch.is_grad_enabled()
        assert sum(map(len, batches)) in (20, 40)
        value = self.script[min(self.asked, len(self.script) - 1)]
        self.asked += 1
        return dict(zip(("first", "second"), value, strict=True))


def test_a_task_learns_what_can_be_learned_and_the_run_says_so(trained):
    assert trained.metrics["test_accuracy"] == trained.metrics["dev_accuracy"] == 1.0
    assert trained.history[-1].loss < trained.history[0].loss
    assert not trained.model.training
    assert trained.metrics["parameters"] == len(weights(trained))
    assert trained.metrics["steps"] == trained.history[-1].step
    assert trained.metrics["best_epoch"] == max(epoch.number for epoch in trained.history if epoch.best)


def test_the_measures_are_those_of_the_weights_in_the_run(trained, task, corpus):
    encoded = task.encode(corpus.test)
    with torch.no_grad():
        found = task.compute_metrics(trained.model, [encoded.select(which) for which in encoded.plan(7)])
    assert trained.metrics["test_loss"] == pytest.approx(found["loss"], rel=1e-5)


@pytest.mark.slow
def test_a_task_with_a_state_learns_and_is_judged(tmp_path):
    corpus = stream()
    run = train(carry(), corpus, settings(batch=4, epochs=12), tmp_path / "run", data=DATA)
    assert run.metrics["test_right"] > 0.5
    assert run.history[-1].dev["perplexity"] < run.history[0].dev["perplexity"]
    assert load_run(tmp_path / "run", Carry).metrics == run.metrics


def test_the_state_goes_from_batch_to_batch_and_begins_anew_every_epoch(tmp_path):
    seen = []

    class Spy(Carry):
        def loss(self, model, batch, state):
            found = super().loss(model, batch, state)
            seen.append((state, found.state))
            return found

    train(Spy(Carry.Architecture(hidden=6, embedding=4)), stream(), settings(epochs=2), tmp_path / "r", data=DATA)
    begins = [k for k, (before, _) in enumerate(seen) if before == ()]
    assert len(begins) == 2
    for k in range(1, len(seen)):
        if k not in begins:
            assert all(map(torch.equal, seen[k][0], seen[k - 1][1]))


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(trained, task, corpus, tmp_path):
    torch.manual_seed(99)  # the caller's generators are no part of it
    again = train(task, corpus, trained.settings, tmp_path / "again", data=DATA)
    assert torch.equal(weights(again), weights(trained))
    assert again.history == trained.history
    other = train(task, corpus, settings(seed=1), tmp_path / "other", data=DATA)
    assert not torch.equal(weights(other), weights(trained))


def test_the_callers_generators_are_left_as_they_were(task, corpus, tmp_path):
    def draw():
        return torch.rand(3).tolist(), random.random(), np.random.rand()

    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(5)
    expected = draw()
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(5)
    train(task, corpus, settings(epochs=1), tmp_path / "run", data=DATA)
    assert draw() == expected


def test_training_stops_after_epochs_without_a_better_one_and_the_best_weights_stay(corpus, tmp_path):
    script = [(3.0, 0.0), (2.0, 0.0), (1.0, 0.0), (1.5, 9.0), (1.1, 0.0), (0.1, 0.0)]
    watching = Watching()
    chosen = settings(epochs=6, patience=2)
    run = train(Scripted(script, corpus), corpus, chosen, tmp_path / "run", data=DATA, callback=watching)
    assert watching.epochs == [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)]
    assert run.metrics["best_epoch"] == 3
    assert run.metrics["epochs"] == 5
    assert int(run.model.steps) == run.history[2].step  # a buffer: it came back with the best weights
    assert run.metrics["dev_first"] == 1.0
    assert run.metrics["test_first"] == 0.1  # asked for a sixth time
    assert watching.ends == 1


def test_among_equals_the_next_measure_decides_and_what_is_no_number_is_worst(corpus, tmp_path):
    nan = math.nan
    run = train(
        Scripted([(nan, 1.0), (2.0, 1.0), (2.0, 3.0), (2.0, 3.0), (nan, 9.0)], corpus),
        corpus,
        settings(epochs=5, patience=5),
        tmp_path / "run",
        data=DATA,
    )
    assert [epoch.best for epoch in run.history] == [True, True, True, False, False]
    assert math.isnan(run.metrics["test_first"])
    assert json.loads((run.folder / "metrics.json").read_text())["test_first"] is None


def test_steps_cut_an_epoch_short_and_what_was_learned_is_judged(task, corpus, tmp_path):
    watching = Watching()
    run = train(task, corpus, settings(steps=13), tmp_path / "run", data=DATA, callback=watching)
    assert [step.number for step in watching.steps] == list(range(1, 14))
    assert [epoch.step for epoch in run.history][-1] == run.metrics["steps"] == 13


def test_the_rate_falls_to_nothing_by_the_last_epoch_where_it_comes_before_the_last_step(task, corpus, tmp_path):
    rates = {}
    for steps in (None, 1000, 8):
        watching = Watching()
        chosen = settings(epochs=2, schedule="linear", steps=steps)
        train(task, corpus, chosen, tmp_path / str(steps), data=DATA, callback=watching)
        rates[steps] = [step.lr for step in watching.steps]
    assert rates[1000] == rates[None]
    assert rates[None][-1] == pytest.approx(0.03 / len(rates[None]))
    assert rates[8][-1] == pytest.approx(0.03 / 8)
    assert rates[8] != rates[None][:8]


def test_the_watcher_sees_every_batch_go_by(task, corpus, tmp_path):
    watching = Watching()
    train(task, corpus, settings(epochs=2), tmp_path / "run", data=DATA, callback=watching)
    for epoch in (1, 2):
        steps = [step for step in watching.steps if step.epoch == epoch]
        assert [step.done for step in steps] == list(range(1, steps[0].total + 1))
        assert sum(step.predictions for step in steps) == 120


def test_the_gradient_is_cut_to_the_norm_that_was_asked_for_and_its_own_norm_is_logged(corpus, tmp_path):
    class Steep(Scripted):
        def loss(self, model, batch, state):
            found = super().loss(model, batch, state)
            return Loss(1e6 * found.total, found.count, state)

    moved = {}
    for clip in (0.01, 0.0):
        watching = Watching()
        chosen = settings(epochs=1, batch=120, optimiser="sgd", lr=1e-9 if clip == 0.0 else 1.0, clip=clip, steps=1)
        task = Steep([(1.0, 1.0)], corpus)
        torch.manual_seed(chosen.seed)
        before = nn.utils.parameters_to_vector(task.build().parameters())
        run = train(task, corpus, chosen, tmp_path / str(clip), data=DATA, callback=watching)
        moved[clip] = (weights(run) - before).norm().item() / chosen.lr
        assert watching.steps[0].norm > 1e4
        line = json.loads((run.folder / "log.jsonl").read_text().splitlines()[-1])
        assert line["norm"] == pytest.approx(watching.steps[0].norm)
    assert moved[0.01] == pytest.approx(0.01, rel=1e-4)
    assert moved[0.0] > 1e4


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["simplified_gru", "simplified_lstm", "rnn", "gru", "lstm"])
def test_spectral_normalisation_bounds_the_weights_of_the_run(corpus, tmp_path, encoder):
    task = classify(corpus, encoder=encoder)
    norms = {}
    for spectral in (True, False):
        folder = tmp_path / f"{spectral}"
        run = train(task, corpus, settings(spectral=spectral, lr=0.1), folder, data=DATA)
        found = [p for name, p in load_run(folder).model.named_parameters() if "weight_hh" in name]
        norms[spectral] = max(
            float(torch.linalg.matrix_norm(block, 2)) for weight in found for block in weight.detach().split(8)
        )
        assert run.metrics["dev_loss"] == pytest.approx(run.history[int(run.metrics["best_epoch"]) - 1].dev["loss"])
    assert norms[True] < 1.05
    assert abs(norms[False] - 1) > 0.05


def test_spectral_normalisation_of_a_network_without_such_weights_is_refused(corpus, tmp_path):
    with pytest.raises(UsageError, match="no weight_hh"):
        train(classify(corpus, encoder="cnn"), corpus, settings(spectral=True), tmp_path / "run", data=DATA)
    assert list(tmp_path.iterdir()) == []


def test_weight_decay_shrinks_matrices(task, corpus, tmp_path):
    sizes = [
        train(task, corpus, settings(weight_decay=decay, optimiser="adamw"), tmp_path / f"{decay}", data=DATA)
        .model.embedding.weight.norm()
        .item()
        for decay in (0.0, 3.0)
    ]
    assert sizes[1] < 0.5 * sizes[0]


def test_resuming_a_run_that_is_over_gives_it(trained, corpus):
    again = resume(trained.folder, corpus)
    assert torch.equal(weights(again), weights(trained))
    assert again.metrics == trained.metrics


def test_a_task_of_ones_own_is_read_with_its_class_and_not_without(tmp_path):
    train(carry(), stream(), settings(epochs=1), tmp_path / "run", data=DATA)
    assert isinstance(load_run(tmp_path / "run", Carry).task, Carry)
    with pytest.raises(DataError, match="unknown task 'carry'"):
        load_run(tmp_path / "run")
