"""Modules in a plain list or dictionary, which torch does not register, open as those of a ModuleList do."""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

IDS = torch.tensor([[3, 7, 1, 5, 2]])


class Loop(nn.Module):
    """Two LSTM cells in a loop, and heads by name."""

    def __init__(self, registered):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        cells, heads = [nn.LSTMCell(4, 5), nn.LSTMCell(5, 5)], {"topic": nn.Linear(5, 2)}
        self.cells = nn.ModuleList(cells) if registered else cells
        self.heads = nn.ModuleDict(heads) if registered else heads

    def forward(self, ids):
        states = [(torch.zeros(len(ids), 5),) * 2 for _ in self.cells]
        for x in self.embedding(ids).unbind(1):
            for number, cell in enumerate(self.cells):
                states[number] = cell(x, states[number])
                x = states[number][0]
        return self.heads["topic"](x)


class Stack(nn.Module):
    """An LSTM below a GRU."""

    def __init__(self, registered):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        layers = [nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 5, batch_first=True)]
        self.layers = nn.ModuleList(layers) if registered else layers
        self.out = nn.Linear(5, 2)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x, _ = layer(x)
        return self.out(x[:, -1])


class Gate(nn.Module):
    """A step whose weights are in a list, beside a dropout."""

    def __init__(self, registered):
        super().__init__()
        parts = [nn.Linear(9, 5), nn.Linear(9, 5), nn.Dropout(0.5)]
        self.parts = nn.ModuleList(parts) if registered else parts

    def forward(self, x, h):
        gate, content, drop = self.parts
        both = torch.cat([x, h], dim=-1)
        z = torch.sigmoid(gate(both))
        return z * h + (1 - z) * drop(torch.tanh(content(both)))


class OwnStep(nn.Module):
    """Such a step in a loop."""

    def __init__(self, registered):
        super().__init__()
        self.embedding, self.step, self.out = nn.Embedding(9, 4), Gate(registered), nn.Linear(5, 2)

    def forward(self, ids):
        h = torch.zeros(len(ids), 5)
        for x in self.embedding(ids).unbind(1):
            h = self.step(x, h)
        return self.out(h)


def both(kind):
    """Return a model that keeps its modules in plain containers, and one with the same weights that registers them."""
    torch.manual_seed(0)
    plain = kind(False).eval()
    torch.manual_seed(0)
    return plain, kind(True).eval()


@pytest.mark.parametrize("kind", [Loop, Stack, OwnStep], ids=lambda kind: kind.__name__)
def test_they_have_the_account_and_the_names_of_registered_ones(kind):
    plain, registered = (unrolled.account(model, IDS, target=0) for model in both(kind))
    torch.testing.assert_close(plain.tokens, registered.tokens, rtol=0, atol=0)
    assert plain.biases == registered.biases
    assert plain.biases


@pytest.mark.parametrize("kind", [Loop, Stack, OwnStep], ids=lambda kind: kind.__name__)
def test_they_have_the_n_grams_of_registered_ones(kind):
    plain, registered = (unrolled.explain(model, IDS, target=0) for model in both(kind))
    assert str(plain) == str(registered)
    mine, theirs = list(plain.ngrams()), list(registered.ngrams())
    assert len(mine) > 1
    assert mine == theirs


def test_a_network_in_a_list_is_named_by_its_place():
    plain, registered = both(Stack)
    found = unrolled.explain(plain, IDS, target=0, rnn="layers.1")
    assert str(found) == str(unrolled.explain(registered, IDS, target=0, rnn="layers.1"))
    assert "layers.0" in str(unrolled.check(plain, IDS))


def test_the_evaluation_mode_reaches_them_and_their_own_mode_comes_back():
    plain, _ = both(OwnStep)  # model.eval() does not reach the dropout in the list
    drop = plain.step.parts[2]
    assert drop.training
    found = unrolled.explain(plain, IDS, target=0)
    assert drop.training
    drop.eval()
    assert found.ledger.logit == pytest.approx(plain(IDS)[0, 0].item(), abs=1e-6)


def test_what_a_run_changes_in_them_comes_back():
    plain, _ = both(Stack)
    norm = nn.BatchNorm1d(4, momentum=None).train()
    plain.norms = [norm]
    plain.embedding.register_forward_hook(lambda _, __, x: norm(x.transpose(1, 2)).transpose(1, 2))
    before = copy.deepcopy(norm.state_dict())
    unrolled.account(plain, IDS, target=0)
    for name, value in norm.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    assert norm.training


TEACHERS = {
    "of cells": lambda: both(Loop)[0],
    "of a network": lambda: both(Stack)[1],
    "half": lambda: both(Stack)[1].bfloat16(),
    "without numbers": lambda: both(Stack)[1].to("meta"),
}


@pytest.mark.quick_diagonal(3)  # quick: every teacher, every kind
@pytest.mark.parametrize("kind", [Loop, Stack, OwnStep], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("teacher", TEACHERS)
def test_a_model_kept_beside_it_and_never_run_changes_nothing(kind, teacher):
    model = both(kind)[1]
    before = [str(call(model, IDS, target=0)) for call in (unrolled.explain, unrolled.account)]
    model.teacher = [TEACHERS[teacher]()]
    assert [str(call(model, IDS, target=0)) for call in (unrolled.explain, unrolled.account)] == before
    assert "teacher" not in str(unrolled.check(model, IDS))


class Held(Gate):
    """Such a step, whose parts are in a container of any kind."""

    def __init__(self, container):
        super().__init__(True)
        parts = list(self.parts)
        del self.parts
        self.held = container(parts)

    def listed(self):
        return [*self.held.values()] if isinstance(self.held, dict) else [*self.held]

    def forward(self, x, h):
        gate, content, _ = self.listed()
        both = torch.cat([x, h], dim=-1)
        z = torch.sigmoid(gate(both))
        return z * h + (1 - z) * torch.tanh(content(both))


class Growing(OwnStep):
    """A model that gives its step other weights before each next step."""

    def __init__(self, container):
        super().__init__(True)
        torch.manual_seed(1)
        self.step = Held(container)

    def forward(self, ids):
        h = torch.zeros(len(ids), 5)
        for x in self.embedding(ids).unbind(1):
            h = self.step(x, h)
            for part in self.step.listed()[:2]:
                part.weight = nn.Parameter(1.3 * part.weight)
        return self.out(h)


CONTAINERS = {
    "ModuleList": nn.ModuleList,
    "list": list,
    "tuple": tuple,
    "dict": lambda parts: dict(zip("abc", parts, strict=True)),
    "OrderedDict": lambda parts: OrderedDict(zip("abc", parts, strict=True)),
    "namedtuple": namedtuple("Parts", "a b c")._make,
    "a list that holds itself": lambda parts: [*parts],
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_step_has_the_weights_that_it_ran_with(container):
    found = []
    for kind in (CONTAINERS[container], nn.ModuleList):
        torch.manual_seed(0)
        model = Growing(kind).eval()
        if container == "a list that holds itself":
            model.step.loop = [nn.Linear(2, 2)]
            model.step.loop.append(model.step.loop)
        before = [part.weight for part in model.step.listed()[:2]]
        found.append(unrolled.explain(model, IDS, target=0))
        assert all(part.weight is weight for part, weight in zip(model.step.listed(), before, strict=False))
    mine, theirs = found
    assert abs(mine.ledger.remainder) < 1e-6
    torch.testing.assert_close(mine.triangle.contributions, theirs.triangle.contributions)


@pytest.mark.filterwarnings("ignore")  # torch's, of quantisation
def test_a_quantised_network_in_a_list_is_refused_in_words_that_help():
    class Quantised(nn.Module):
        def __init__(self, keep):
            super().__init__()
            self.embedding, self.out = nn.Embedding(9, 4), nn.Linear(5, 2)
            whole = nn.Sequential(nn.LSTM(4, 5, batch_first=True))
            self.parts = keep([torch.ao.quantization.quantize_dynamic(whole, {nn.LSTM})[0]])

        def forward(self, ids):
            return self.out(self.parts[0](self.embedding(ids))[0][:, -1])

    with pytest.raises(UsageError, match=r"parts\.0 is quantised, .* keep it in a torch\.nn\.ModuleList"):
        unrolled.explain(Quantised(list), IDS)
    found = unrolled.explain(Quantised(nn.ModuleList), IDS)
    assert any("is quantised" in note for note in found.notes)
