"""Modules in a plain list or dictionary, which torch does not register, open as those of a ModuleList do."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import unrolled

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


def test_a_model_kept_beside_it_and_never_run_changes_nothing():
    plain, _ = both(Stack)
    alone = unrolled.explain(plain, IDS, target=0)
    plain.teacher = [both(Loop)[0]]
    assert str(unrolled.explain(plain, IDS, target=0)) == str(alone)
    assert unrolled.account(plain, IDS, target=0).closes
