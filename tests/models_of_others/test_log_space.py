"""Recurrences in log space: minGRU and minLSTM in parallel form, as their users write them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

V, E = 13, 5
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [2, 6, 5, 3, 5, 8, 7]])


def g(x):
    return torch.where(x >= 0, F.relu(x) + 0.5, x.sigmoid())


def log_g(x):
    return torch.where(x >= 0, (F.relu(x) + 0.5).log(), -F.softplus(-x))


class MinGRU(nn.Module):
    """A layer in log space: the parallel scan of Heinsen."""

    parts = 2

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(E, self.parts * E)

    def logarithms(self, x):
        """Return log a_t, and the logarithm of what is written."""
        gate, hidden = self.project(x).chunk(2, dim=-1)
        return -F.softplus(gate), -F.softplus(-gate) + log_g(hidden)

    def gates(self, x):
        """Return the same without logarithms."""
        gate, hidden = self.project(x).chunk(2, dim=-1)
        z = gate.sigmoid()
        return 1 - z, z * g(hidden)

    def forward(self, x, before=None):
        log_coeffs, log_values = self.logarithms(x)
        if before is not None:
            log_values = torch.cat((before.log(), log_values), dim=1)
            log_coeffs = F.pad(log_coeffs, (0, 0, 1, 0))
        a_star = log_coeffs.cumsum(dim=1)
        return (a_star + (log_values - a_star).logcumsumexp(dim=1)).exp()[:, -x.shape[1] :]


class MinLSTM(MinGRU):
    """Two gates, normalised to sum to one."""

    parts = 3

    def logarithms(self, x):
        forget, into, hidden = self.project(x).chunk(3, dim=-1)
        difference = F.softplus(-forget) - F.softplus(-into)
        return -F.softplus(difference), -F.softplus(-difference) + log_g(hidden)

    def gates(self, x):
        forget, into, hidden = self.project(x).chunk(3, dim=-1)
        difference = F.softplus(-forget) - F.softplus(-into)
        return torch.sigmoid(-difference), torch.sigmoid(difference) * g(hidden)


class Loop(nn.Module):
    """The same layer step by step, without logarithms."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, before=None):
        a, v = self.layer.gates(x)
        h = torch.zeros_like(v[:, 0]) if before is None else before[:, 0]
        states = []
        for t in range(x.shape[1]):
            h = a[:, t] * h + v[:, t]
            states.append(h)
        return torch.stack(states, dim=1)


class Model(nn.Module):
    def __init__(self, kind, layers, residual):
        super().__init__()
        torch.manual_seed(4)
        self.embed, self.head, self.residual = nn.Embedding(V, E), nn.Linear(E, 3), residual
        self.layers = nn.ModuleList([kind() for _ in range(layers)])
        self.double().eval()

    def forward(self, ids, before=None):
        x = self.embed(ids)
        for layer in self.layers:
            h = layer(x, before)
            x = x + h if self.residual else h
        return self.head(x[:, -1])

    def in_a_loop(self):
        self.layers = nn.ModuleList([Loop(layer) for layer in self.layers])
        return self


SHAPES = [(1, False), (1, True), (2, False), (2, True)]


def arguments(state):
    if not state:
        return (IDS,)
    return IDS, torch.rand(2, 1, E, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) + 0.1


@pytest.mark.quick_diagonal(4)  # quick: every kind, each option on and off
@pytest.mark.parametrize("share", [0.75, 1.0])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize(("layers", "residual"), SHAPES)
@pytest.mark.parametrize("kind", [MinGRU, MinLSTM])
def test_an_account_in_log_space_is_that_of_the_plain_loop(kind, layers, residual, state, share):
    model = Model(kind, layers, residual)
    found = unrolled.account(model, *arguments(state), target=1, share=share)
    assert found.closes
    assert float(found.remainder.abs().max()) < 1e-9
    torch.testing.assert_close(found.output, model(*arguments(state))[:, 1].detach())
    plain = unrolled.account(model.in_a_loop(), *arguments(state), target=1, share=share)
    torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=0, atol=1e-10)
    for name, part in plain.features.items():
        torch.testing.assert_close(found.features[name], part, rtol=0, atol=1e-10)
    assert found.biases.keys() == {name.replace(".layer.", ".") for name in plain.biases}
    for name, part in plain.biases.items():
        torch.testing.assert_close(found.biases[name.replace(".layer.", ".")], part, rtol=0, atol=1e-10)


class FirstApart(Loop):
    """A loop that begins with what the first step writes, without zeros."""

    def forward(self, x, _=None):
        a, v = self.layer.gates(x)
        states = [v[:, 0]]
        for t in range(1, x.shape[1]):
            states.append(a[:, t] * states[-1] + v[:, t])
        return torch.stack(states, dim=1)


class Divided(MinLSTM):
    """The gates divided by their sum, as in the sequential form."""

    def gates(self, x):
        forget, into, hidden = self.project(x).chunk(3, dim=-1)
        f, i = forget.sigmoid(), into.sigmoid()
        return f / (f + i), i / (f + i) * g(hidden)


@pytest.mark.parametrize(("kind", "loop"), [(MinGRU, FirstApart), (Divided, Loop)])
def test_a_loop_that_writes_its_first_step_apart_or_divides_its_gates_has_another_account(kind, loop):
    model = Model(kind, 1, False)
    found, output = unrolled.account(model, IDS, target=1), model(IDS)
    model.layers = nn.ModuleList([loop(layer) for layer in model.layers])
    torch.testing.assert_close(model(IDS), output)
    other = unrolled.account(model, IDS, target=1)
    assert found.closes
    assert other.closes
    assert float((found.texts["0"] - other.texts["0"]).abs().max()) > 1e-4


@pytest.mark.parametrize("kind", [MinGRU, MinLSTM])
def test_every_token_that_changes_the_output_contributes(kind):
    model = Model(kind, 1, True)
    found = unrolled.account(model, IDS, target=1).texts["0"]
    for place in range(IDS.shape[1]):
        other = IDS.clone()
        other[:, place] = 12
        moved = (model(other) - model(IDS))[:, 1].abs()
        assert bool((moved > 1e-12).all())
        assert bool((found[:, place].abs() > 1e-12).all())


@pytest.mark.parametrize("kind", [MinGRU, MinLSTM])
def test_in_single_precision(kind):
    model = Model(kind, 2, True)
    double = unrolled.account(model, *arguments(True), target=1)
    before = arguments(True)[1].float()
    single = unrolled.account(model.float(), IDS, before, target=1)
    assert single.closes
    torch.testing.assert_close(single.texts["0"].double(), double.texts["0"].double(), rtol=1e-3, atol=1e-5)


def test_a_long_sequence_does_not_overflow():
    model = Model(MinGRU, 1, True)
    ids = torch.randint(V, (1, 1500), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.layers[0].project.bias[:E] = 3.0  # the state is forgotten within some steps
    found = unrolled.account(model, ids, target=1)
    assert found.closes
    assert bool(torch.isfinite(found.texts["0"]).all())
    plain = unrolled.account(model.in_a_loop(), ids, target=1)
    torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=0, atol=1e-10)
