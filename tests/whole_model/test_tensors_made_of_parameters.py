"""A tensor that a model made of its parameters before the run counts as a number of it, though autograd follows it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import unrolled
from unrolled.errors import UnsupportedOperationError

TOKENS = torch.tensor([[1, 5, 2, 4]])
Of = Callable[[Tensor], Tensor]


class Scaled(nn.Module):
    """Multiplies and adds what it made of its parameters when it was built; ``of`` is applied to each of them."""

    def __init__(self, of: Of) -> None:
        super().__init__()
        self.emb, self.rnn, self.fc = nn.Embedding(11, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.keep(of(self.fc.weight.abs().amax(dim=1) * 2 + 1), of(self.fc.bias * 3))

    def keep(self, scale: Tensor, mask: Tensor) -> None:
        self.register_buffer("scale", scale)
        self.mask = mask

    def after(self, y: Tensor) -> Tensor:
        return y * self.scale + self.mask

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.fc(self.rnn(self.emb(x))[0][:, -1]))


class InContainers(Scaled):
    """Keeps them in a list and a dictionary."""

    def keep(self, scale: Tensor, mask: Tensor) -> None:
        self.kept: list[Any] = [scale, {"mask": mask}]

    def after(self, y: Tensor) -> Tensor:
        return torch.addcmul(self.kept[1]["mask"], y, self.kept[0])


@dataclass
class Pair:
    scale: Tensor
    mask: Tensor


class InDataclass(Scaled):
    """Keeps them in a dataclass."""

    def keep(self, scale: Tensor, mask: Tensor) -> None:
        self.pair = Pair(scale, mask)

    def after(self, y: Tensor) -> Tensor:
        return torch.stack([y * self.pair.scale.real, self.pair.mask.expand_as(y)]).sum(dim=0)


class ClosedOver(Scaled):
    """Has a function that closes over them."""

    def keep(self, scale: Tensor, mask: Tensor) -> None:
        self.function: Of = lambda y: mask + scale * y

    def after(self, y: Tensor) -> Tensor:
        return self.function(y)


class Table(Scaled):
    """Looks its words up in a table that it made of its parameters."""

    def __init__(self, of: Of) -> None:
        super().__init__(of)
        self.table = of(self.emb.weight * 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.fc(self.rnn(F.embedding(x, self.table))[0][:, -1]))


class Indexed(Table):
    """Indexes the table."""

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.fc(self.rnn(self.table[x])[0][:, -1]))


class Started(Scaled):
    """Begins with a state that it made of its parameters."""

    def __init__(self, of: Of) -> None:
        super().__init__(of)
        self.start = of(self.fc.weight[:1] * 2).unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.fc(self.rnn(self.emb(x), self.start)[0][:, -1]))


class Step(nn.Module):
    """One step of a recurrence with a factor of its state."""

    def __init__(self, of: Of) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(4, 5), nn.Linear(5, 5)
        self.decay = of(torch.sigmoid(self.w.bias))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.w(x) + self.u(h) * self.decay) + self.decay


class OwnCell(Scaled):
    """A recurrence by hand."""

    def __init__(self, of: Of) -> None:
        super().__init__(of)
        self.rnn = Step(of)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(len(x), 5)
        for each in self.emb(x).unbind(dim=1):
            h = self.rnn(each, h)
        return self.after(self.fc(h))


class Stateful(Scaled):
    """Keeps the state of the call before, with its graph."""

    def __init__(self, of: Of) -> None:
        super().__init__(of)
        self.of, self.state = of, None
        self(torch.tensor([[3, 1]]))

    def forward(self, x: Tensor) -> Tensor:
        states, last = self.rnn(self.emb(x), self.state)
        self.state = self.of(last)
        return self.after(self.fc(states[:, -1]))


class Remembers(Scaled):
    """Adds what it gave the time before."""

    def __init__(self, of: Of) -> None:
        super().__init__(of)
        self.of, self.last = of, of(self.fc.bias * 2)

    def after(self, y: Tensor) -> Tensor:
        result = super().after(y) + self.last
        self.last = self.of(result)
        return result


def leaf(value: Tensor) -> Tensor:
    return value.detach().requires_grad_()


MODELS = [Scaled, InContainers, InDataclass, ClosedOver, Table, Indexed, Started, OwnCell, Stateful, Remembers]


CASES = [(kind, torch.clone) for kind in MODELS]
CASES += [(kind, leaf) for kind in MODELS if kind not in (InDataclass, ClosedOver)]  # as no module keeps the leaves


def model(kind: type[Scaled], of: Of) -> Scaled:
    torch.manual_seed(0)
    return kind(of).eval()


@pytest.mark.parametrize(("kind", "of"), CASES)
def test_an_account_is_that_of_the_same_numbers_without_a_graph(kind: type[Scaled], of: Of) -> None:
    found = unrolled.account(model(kind, of), TOKENS, target=1)
    without = unrolled.account(model(kind, torch.detach), TOKENS, target=1)
    assert found.closes
    assert torch.equal(found.texts["0"], without.texts["0"])
    assert found.biases.keys() == without.biases.keys()
    assert all(torch.equal(found.biases[name], without.biases[name]) for name in found.biases)


@pytest.mark.parametrize(("kind", "of"), CASES)
def test_an_explanation_is_that_of_the_same_numbers_without_a_graph(kind: type[Scaled], of: Of) -> None:
    found = unrolled.explain(model(kind, of), TOKENS, target=1)
    without = unrolled.explain(model(kind, torch.detach), TOKENS, target=1)
    assert found.notes == without.notes
    assert not any("ray" in each for each in found.notes)
    assert torch.equal(found.token_scores, without.token_scores)


@pytest.mark.parametrize("kind", [Scaled, InContainers])
def test_another_thread_than_the_one_that_made_the_model_finds_them_too(kind: type[Scaled]) -> None:
    made = model(kind, torch.clone)
    here = unrolled.account(made, TOKENS, target=1)
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(unrolled.account, made, TOKENS, target=1).result()
    assert there.closes
    assert torch.equal(there.texts["0"], here.texts["0"])


class KeptInTheRun(Scaled):
    """Adds what its own run has kept."""

    def after(self, y: Tensor) -> Tensor:
        self.mask = y * 2
        return super().after(y)


def test_a_tensor_that_the_run_keeps_carries_value_as_ever() -> None:
    found = unrolled.account(model(KeptInTheRun, torch.clone), TOKENS, target=1)
    of_numbers = unrolled.account(model(Scaled, torch.clone), TOKENS, target=1)
    assert found.closes
    assert not torch.allclose(found.texts["0"], of_numbers.texts["0"])


class WithoutHooks(InContainers):
    """Has a way of its own to be called, in which torch calls no hooks."""

    def __call__(self, *args: Tensor) -> Tensor:
        return self.forward(*args)


@pytest.mark.parametrize("of", [leaf, torch.clone])
def test_what_a_model_without_hooks_keeps_is_a_number_of_it(of: Of) -> None:
    found, plain = (unrolled.account(model(WithoutHooks, each), TOKENS, target=1) for each in (of, torch.detach))
    assert found.closes
    assert torch.equal(found.texts["0"], plain.texts["0"])  # the control keeps tensors without a graph


class KeepsFirst(nn.Module):
    """Keeps its argument before anything else; it may have no parameters."""

    def __init__(self, keeps: bool, registers: bool) -> None:
        super().__init__()
        self.keeps, self.given = keeps, None
        fc = nn.Linear(5, 3)
        self.weight, self.bias = (fc.weight, fc.bias) if registers else (fc.weight.detach(), fc.bias.detach())
        if registers:
            self.rnn = nn.GRU(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.keeps:
            self.given = x
        h = self.rnn(x)[0][:, -1] if isinstance(self.weight, nn.Parameter) else F.pad(x.sum(dim=1).tanh(), (0, 1))
        return F.linear(h, self.weight, self.bias)


def keeps_first(keeps: bool, registers: bool) -> tuple[KeepsFirst, Tensor]:
    torch.manual_seed(0)
    return KeepsFirst(keeps, registers), torch.randn(1, 6, 4)


@pytest.mark.parametrize("registers", [True, False])
def test_an_argument_that_a_model_keeps_first_carries_value(registers: bool) -> None:
    kept, plain = (unrolled.account(*keeps_first(keeps, registers), target=1) for keeps in (True, False))
    assert kept.closes
    assert bool(kept.features["0"].any())
    assert torch.equal(kept.features["0"], plain.features["0"])  # the control keeps nothing


def test_the_features_of_an_argument_that_a_model_keeps_first_are_shown() -> None:
    kept, plain = (unrolled.explain(*keeps_first(keeps, True), target=1) for keeps in (True, False))
    assert kept.features is not None
    assert plain.features is not None
    assert kept.features.names == plain.features.names


class InAnotherThread(nn.Module):
    """Lets another thread compute a part of what it returns."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.other, self.threads = nn.Linear(4, 3), nn.Linear(4, 3), threads

    def forward(self, x: Tensor) -> Tensor:
        if not self.threads:
            return self.one(x) + self.other(x)
        with ThreadPoolExecutor(self.threads) as pool:
            return pool.submit(self.one, x).result() + self.other(x)


def test_what_another_thread_makes_of_value_is_no_number_from_outside() -> None:
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    assert unrolled.account(InAnotherThread(0), x, target=1).closes  # the control
    with pytest.raises(UnsupportedOperationError, match="multiplies two operands that carry value"):
        unrolled.account(InAnotherThread(1), x, target=1)
