"""Arguments in containers, tensors that ask for gradients, gradients inside, and mixtures of softmaxes."""

from __future__ import annotations

import copy
from collections import OrderedDict, UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn

import unrolled
from outside_judge import ids, numbers

V = 30


class Pair(NamedTuple):
    ids: torch.Tensor
    numbers: torch.Tensor


@dataclass
class Batch:
    ids: torch.Tensor
    numbers: torch.Tensor
    count: int = 2


class Hidden:
    def __init__(self, ids, numbers):
        self.ids, self.numbers = ids, numbers


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.rnn, self.fc = nn.Embedding(V, 3), nn.GRU(5, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, batch):
        ids, numbers = (batch["ids"], batch["numbers"]) if isinstance(batch, Mapping) else (batch.ids, batch.numbers)
        return self.fc(self.rnn(torch.cat([self.e(ids), numbers], -1))[1][0])


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (Pair, ("0.0", "0.1")),
        (Batch, ("0.ids", "0.numbers")),
        (lambda i, n: OrderedDict(ids=i, numbers=n), ("0.ids", "0.numbers")),
        (lambda i, n: UserDict(ids=i, numbers=n), ("0.ids", "0.numbers")),
    ],
)
def test_containers_of_any_class_are_opened(make, names):
    torch.manual_seed(0)
    model, batch = Reader().double(), make(ids(2, 4), numbers(2, 4, 2))
    before = copy.deepcopy(batch)
    found = unrolled.account(model, batch, target=1)
    plain = unrolled.account(model, {"ids": ids(2, 4), "numbers": numbers(2, 4, 2)}, target=1)
    assert found.closes
    assert torch.equal(found.texts[names[0]], plain.texts["0.ids"])
    assert torch.equal(found.features[names[1]], plain.features["0.numbers"])
    assert unrolled.explain_batch(model, batch, target=1)[0].closes
    assert type(batch) is type(before)
    assert str(batch) == str(before)


def test_what_is_not_searched_is_named():
    with pytest.raises(unrolled.UsageError, match="argument 0 is a Hidden, which is not searched for tensors"):
        unrolled.account(Reader(), Hidden(ids(1, 3), numbers(1, 3, 2).float()), target=1)


class OfArrays(nn.Module):
    """Makes a tensor of what it is given, as a model does that takes lists, arrays and tensors alike."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.e, self.rnn, self.fc = nn.Embedding(V, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, ids):
        return self.fc(self.rnn(self.e(torch.as_tensor(ids)))[0][:, -1])


def test_of_an_array_a_tensor_is_asked_for_which_opens():
    with pytest.raises(unrolled.UsageError, match=r"argument 0 is an ndarray, .*pass a tensor.*torch\.as_tensor"):
        unrolled.account(OfArrays(), ids(1, 3).numpy(), target=1)
    found = unrolled.account(OfArrays(), torch.as_tensor(ids(1, 3).numpy()), target=1)
    assert found.closes
    assert found.tokens.abs().min() > 0


class Asks(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.rnn, self.fc = nn.Embedding(V, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, ids):
        h = torch.ones(1, len(ids), 4, requires_grad=True, dtype=torch.float64)
        return self.fc(self.rnn(self.e(ids), h)[0][:, -1] + h[0])


class Differentiates(Asks):
    def forward(self, ids):
        x = self.e(ids).detach().requires_grad_(True)
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(self.rnn(x)[0].square().sum(), x)
        return torch.cat([slope.sum(1), slope[:, :1, 0]], -1)


class Transformed(Asks):
    def forward(self, ids):
        slope = torch.func.grad(lambda x: self.fc(torch.tanh(torch.nn.functional.pad(x, (0, 1)))).sum())
        return slope(self.e(ids).sum(1))


def test_a_tensor_that_asks_for_a_gradient_is_a_constant():
    torch.manual_seed(0)
    found = unrolled.account(Asks().double(), ids(2, 4), target=1)
    assert found.closes
    assert bool((found.constants["constants"] != 0).all())


@pytest.mark.parametrize(
    ("make", "message"),
    [(Differentiates, "differentiates inside its forward"), (Transformed, "transform of torch.func")],
)
def test_what_no_rule_can_meet_is_refused_by_name(make, message):
    torch.manual_seed(0)
    with pytest.raises(unrolled.UsageError, match=message):
        unrolled.account(make().double(), ids(2, 4), target=1)


def test_a_model_that_differentiates_is_refused_by_explain_too():
    with pytest.raises(unrolled.UsageError, match="differentiates inside its forward"):
        unrolled.explain_batch(Differentiates().double(), ids(2, 4), target=1)


class Pointer(nn.Module):
    """Copies words by attention, or generates them: p vocabulary + (1 - p) attention."""

    def __init__(self):
        super().__init__()
        self.e, self.rnn = nn.Embedding(V, 3), nn.GRU(3, 4, batch_first=True)
        self.out, self.gate = nn.Linear(4, V), nn.Linear(4, 1)

    def forward(self, ids):
        states, h = self.rnn(self.e(ids))
        weights = torch.softmax((states * h[0][:, None]).sum(-1), -1)
        context = (weights[..., None] * states).sum(1)
        gate = torch.sigmoid(self.gate(context))
        return (gate * torch.softmax(self.out(context), -1)).scatter_add(1, ids, (1 - gate) * weights)


def test_a_mixture_of_softmaxes_names_what_is_held():
    torch.manual_seed(0)
    model = Pointer().double()
    found = unrolled.account(model, ids(1, 5), target=7)
    assert found.closes
    assert set(found.constants) == {"softmax"}
    assert any("held contribute to the output by themselves: softmax" in note for note in found.notes)
    explained = unrolled.explain(model, ids(1, 5), target=7)
    assert any("depend on the states and are held: softmax" in note for note in explained.notes)
    gated = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 2)).double()
    assert not unrolled.account(gated, numbers(1, 3), target=1).notes


class Sharpened(nn.Module):
    """Adds a small share of its probabilities to the logits."""

    def __init__(self, share):
        super().__init__()
        torch.manual_seed(0)
        self.e, self.rnn, self.out = nn.Embedding(V, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)
        self.share = share
        self.double()

    def forward(self, ids):
        logits = self.out(self.rnn(self.e(ids))[0][:, -1])
        return logits + self.share * torch.softmax(logits, -1)


@pytest.mark.parametrize(("share", "is_noted"), [(0.02, True), (1e-6, False)])
def test_an_account_and_an_explanation_note_the_same_held_results(share, is_noted):
    model = Sharpened(share)
    account = unrolled.account(model, ids(1, 5), target=1)
    assert abs(float(account.constants["softmax"])) < 0.1 * abs(float(account.output))
    explained = unrolled.explain(model, ids(1, 5), target=1)
    assert any("held contribute to the output by themselves: softmax" in note for note in account.notes) is is_noted
    assert any("depend on the states and are held: softmax" in note for note in explained.notes) is is_noted
