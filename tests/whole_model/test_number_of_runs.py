"""What a call costs in runs of the model, of its recurrent network, of its head and of autograd: counted, not timed."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import unrolled
from unrolled.decomposition.held_networks.recorded_networks import RecordedNetworks
from whole_model_zoo import Classifier, ids

KINDS = [nn.RNN, nn.GRU, nn.LSTM]
FUSED = {nn.RNN: "aten::rnn_tanh", nn.GRU: "aten::gru", nn.LSTM: "aten::lstm"}


def events(call):
    """How often torch's own operations ran during a call, by name."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        call()
    return {event.key: event.count for event in profiled.key_averages()}


@contextmanager
def counted(model, monkeypatch):
    """Count the calls of the head, of the model and of autograd."""
    calls = {"head": 0, "model": 0, "backward": 0}

    def count(name):
        return lambda *_: calls.__setitem__(name, calls[name] + 1)

    handles = [model.register_forward_hook(count("model")), model.head.register_forward_hook(count("head"))]
    grad = torch.autograd.grad

    def counting(*args, **kwargs):
        calls["backward"] += 1
        return grad(*args, **kwargs)

    monkeypatch.setattr(torch.autograd, "grad", counting)
    yield calls
    monkeypatch.undo()
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("kind", KINDS)
def test_an_account_runs_the_network_once_and_the_model_twice(kind, monkeypatch):
    model, tokens = Classifier(kind, 1, False, "last", "linear"), ids(6, 9)
    with counted(model, monkeypatch) as calls:
        unrolled.account(model, tokens, target=1)
    assert calls == {"model": 2, "head": 2, "backward": 1}
    once = events(lambda: model(tokens))
    for call in (unrolled.account, unrolled.explain_batch):
        found = events(lambda call=call: call(model, tokens, target=1))
        assert found[FUSED[kind]] == once[FUSED[kind]] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_of_many_words_runs_twice(kind, monkeypatch):
    """Also where a logit of the batch is nearly zero, which made a ray replay the head 145 times."""
    model, tokens = Classifier(kind, 1, False, "last", "linear"), ids(6, 9)
    model.head = nn.Linear(model.head.in_features, 10_000)
    with torch.no_grad():
        model.head.bias[7] -= model(tokens)[2, 7]
        assert float(model(tokens)[2, 7].abs()) < 1e-6
    # three of explain's go through the embedding alone: they find which token each position reads
    for call, passes in ((unrolled.account, 1), (unrolled.explain_batch, 1 + 3)):
        with counted(model, monkeypatch) as calls:
            call(model, tokens, target=7)
        assert calls["head"] == calls["model"] == 2
        assert calls["backward"] == passes


@pytest.mark.quick_diagonal(2)  # quick: both heads, each option on and off
@pytest.mark.parametrize("head", ["linear", "gated"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
def test_all_outputs_are_read_from_one_held_run(layers, both, head, monkeypatch):
    model, tokens = Classifier(nn.GRU, layers, both, "mean", head), ids(6, 9)
    classes = model(tokens).shape[1]
    assert 1 < classes <= 5
    for asked, passes in ((None, classes), (False, 1)):
        with counted(model, monkeypatch) as calls:
            found = unrolled.explain_batch(model, tokens, target=1, every_class=asked)
        assert len(found[0].by_class) == (0 if asked is False else classes)
        assert calls == {"head": 2, "model": 2, "backward": passes + 3}


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain, unrolled.explain_batch])
def test_the_number_of_operations_does_not_depend_on_the_number_of_classes(call):
    model, tokens = Classifier(nn.GRU, 1, False, "last", "linear"), ids(1, 9)
    counts = []
    for classes in (6, 600):  # of more than five, the target alone is explained
        model.head = nn.Linear(model.head.in_features, classes)
        counts.append(sum(events(lambda: call(model, tokens, target=1)).values()))
    few, many = counts
    assert many < 1.1 * few


def test_the_number_of_operations_on_the_outputs_does_not_depend_on_the_number_of_examples():
    model = Classifier(nn.GRU, 1, False, "last", "linear")
    model.head = nn.Linear(model.head.in_features, 600)
    counts = [events(lambda n=n: unrolled.explain_batch(model, ids(n, 9), target=1))["aten::all"] for n in (3, 30)]
    assert counts[1] < 1.1 * counts[0]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_the_triangle_of_secant_takes_the_operations_of_that_of_operating(kind):
    rnn, x, weight = kind(5, 6), torch.randn(12, 3, 5), torch.randn(2, 6)

    def operations(expansion):
        found = unrolled.decompose(rnn, x, expansion=expansion)
        return events(lambda: found.scores(weight))

    assert operations("secant") == operations("operating")
    assert operations("gates")["aten::mm"] < operations("operating")["aten::mm"]


@pytest.mark.quick_diagonal(3)  # quick: every network, each option on and off
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_wrong_records_of_a_network_are_not_used(kind, both, packed, monkeypatch):
    """What was recorded is a proposal: it is used where the states follow from it, and else the network runs again."""
    model, tokens = Classifier(kind, 2, both, "mean", "linear", packed).double(), ids(3, 7)
    lengths = (torch.tensor([7, 3, 5]),) if packed else ()
    expected = unrolled.account(model, tokens, *lengths, target=1)
    given = RecordedNetworks.outputs
    used = []

    def wrong(self, *args, **kwargs):
        found = given(self, *args, **kwargs)
        used.append(found is not None)
        return None if found is None else found + 0.1 * torch.randn_like(found)

    monkeypatch.setattr(RecordedNetworks, "outputs", wrong)
    found = unrolled.account(model, tokens, *lengths, target=1)
    assert used == [True]
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=1e-9, atol=1e-11)
    assert found.closes


def test_a_network_that_is_called_in_turn_with_another_has_its_own_record():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(20, 5), nn.Linear(6, 2)
            self.one, self.two = nn.GRU(5, 6, batch_first=True), nn.GRU(6, 6)

        def forward(self, tokens):
            first = self.one(self.embed(tokens))[0]
            first.mul_(0.5)  # the model changes what the network gave
            return self.head(self.two(first.transpose(0, 1))[0][-1])

    model, tokens = Pair().double(), torch.randint(20, (4, 6))
    found = unrolled.account(model, tokens, target=1)
    assert float((found.remainder / found.movement).abs().max()) < 1e-12
    counts = events(lambda: unrolled.account(model, tokens, target=1))
    assert counts["aten::gru"] == 2


class Step(nn.Module):
    """A gated step as a user writes it, which counts its runs where an explanation does not put back what it finds."""

    runs = iter(())

    def __init__(self):
        super().__init__()
        self.gate, self.content = nn.Linear(5, 3), nn.Linear(5, 3)

    def forward(self, x, h):
        next(Step.runs)
        z = torch.sigmoid(self.gate(torch.cat([x, h], dim=-1)))
        return z * h + (1 - z) * torch.tanh(self.content(torch.cat([x, h], dim=-1)))


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.step, self.head = Step(), nn.Linear(3, 2)

    def forward(self, xs):
        h = xs.new_zeros(len(xs), 3)
        for x in xs.unbind(1):
            h = self.step(x, h)
        return self.head(h)


def test_an_explanation_runs_a_step_of_ones_own_as_often_for_many_examples_as_for_one():
    counts = []
    for batch in (1, 2, 32):
        model, Step.runs = Loop().double().eval(), itertools.count()
        found = unrolled.explain_batch(model, torch.randn(batch, 4, 2, dtype=torch.float64), target=1)
        assert len(found) == batch
        assert all(each.closes for each in found)
        counts.append(next(Step.runs))
    assert counts[0] == counts[1] == counts[2] <= 12 * 4
