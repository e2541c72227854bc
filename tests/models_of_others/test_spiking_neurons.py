"""Neurons as libraries of spiking networks write them: no parameters, a kept state, methods kept as attributes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from surrogate_gradients import Spike
from unrolled.errors import UnsupportedOperationError

X = 2 * torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Neuron(nn.Module):
    """Leaks and fires; the state of another batch is replaced by zeros, the reset is detached."""

    def __init__(self, by_zero=False, recurrent=0):
        super().__init__()
        self.register_buffer("decay", torch.tensor(0.9))
        self.register_buffer("potential", torch.zeros(0), persistent=False)
        self.recurrent = nn.Linear(recurrent, recurrent) if recurrent else None
        self.change = self._to_zero if by_zero else self._by_one
        self.fires = Spike.apply

    def begin(self):
        self.potential = torch.zeros_like(self.potential)
        return self.potential

    def forward(self, current, potential):
        if not potential == None:  # noqa: E711, SIM201  # as they write it
            self.potential = potential
        if self.potential.shape != current.shape:
            self.potential = torch.zeros_like(current)
        self.reset = self.fires(self.potential - 1).clone().detach()
        if self.recurrent is not None:
            current = current + self.recurrent(self.reset)
        self.potential = self.change(current)
        return self.fires(self.potential - 1), self.potential

    def _by_one(self, current):
        return self.decay.clamp(0, 1) * self.potential + current - self.reset

    def _to_zero(self, current):
        return self.decay * (1 - self.reset) * self.potential + current


class Network(nn.Module):
    """Two layers; the output is the mean potential of the second one, which does not fire."""

    def __init__(self, **neurons):
        super().__init__()
        torch.manual_seed(1)
        self.reads, self.first = nn.Linear(3, 8), Neuron(**neurons)
        self.between, self.second = nn.Linear(8, 2), Neuron()
        self.double()

    def forward(self, xs):
        one, two, potentials = self.first.begin(), self.second.begin(), []
        for x in xs.unbind(1):
            spikes, one = self.first(self.reads(x), one)
            _, two = self.second(self.between(spikes), two)
            potentials.append(two)
        return torch.stack(potentials).mean(0)


NETWORKS = {"by one": {}, "to zero": {"by_zero": True}, "recurrent": {"recurrent": 8}}


@pytest.mark.quick_diagonal(3)  # quick: every network, both expansions, each layer
@pytest.mark.parametrize("rnn", [None, "first", "second"])
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_spiking_neurons_is_opened(name, expansion, rnn):
    model = Network(**NETWORKS[name]).eval()
    expected = model(X)
    which = {} if rnn is None else {"rnn": rnn}
    for max_order in (None, 1):
        found = unrolled.explain_batch(model, X, target=1, expansion=expansion, max_order=max_order, **which)
        for each, logit in zip(found, expected[:, 1], strict=True):
            assert abs(each.ledger.remainder) < 1e-12
            assert abs(each.ledger.logit - logit) < 1e-12
            assert abs(each.triangle.contributions).max() > 1e-3
    torch.testing.assert_close(model(X), expected, rtol=0, atol=0)


@pytest.mark.parametrize("before", [0, 1, 2, 5])
def test_the_state_that_an_earlier_batch_left_changes_nothing(before):
    model = Network().eval()
    fresh = unrolled.explain(model, X[:1], target=1).triangle.contributions
    model = Network().eval()
    if before:
        model(X[:1].expand(before, -1, -1))
    found = unrolled.explain(model, X[:1], target=1)
    torch.testing.assert_close(found.triangle.contributions, fresh, rtol=0, atol=1e-12)
    assert model.first.potential.shape[0] == before


def test_check_names_both_layers():
    found = unrolled.check(Network().eval(), X)
    assert [(part.path, part.opens, part.why) for part in found.parts[:2]] == [
        ("first", True, ""),
        ("second", True, ""),
    ]


def test_a_state_that_is_not_zero_and_of_another_shape_is_refused():
    class Begun(Network):
        def forward(self, xs):
            one, spikes = torch.full((1, 8), 0.5, dtype=xs.dtype), 0
            for x in xs.unbind(1):
                fired, one = self.first(self.reads(x), one)
                spikes = spikes + fired
            return self.between(spikes)

    with pytest.raises(UnsupportedOperationError, match=r"reads a state of shape \(1, 8\) and returns no such state"):
        unrolled.explain(Begun().eval(), X, target=1)
