"""Cells as users write them, and the models around them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

V, E, D, T = 11, 4, 5, 6
IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])
EXACT = ["secant", "path", "operating"]


class OwnGRU(nn.Module):
    """A GRU by hand: forward(x, h) -> h."""

    def __init__(self, inputs, units):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(inputs, 3 * units), nn.Linear(units, 3 * units)

    def forward(self, x, h):
        xr, xz, xn = self.of_input(x).chunk(3, dim=1)
        hr, hz, hn = self.of_state(h).chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + r * hn) + z * h


class OwnLSTM(nn.Module):
    """An LSTM by hand: forward(x, h, c) -> (h, c)."""

    def __init__(self, inputs, units):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(inputs, 4 * units), nn.Linear(units, 4 * units)

    def forward(self, x, h, c):
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Loop(nn.Module):
    """The user's model: a Python loop over a cell."""

    def __init__(self, cell, call, start, read=lambda state: state):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head = nn.Embedding(V, E), cell, nn.Linear(D, 3)
        self.call, self.start, self.read = call, start, read
        self.double().eval()

    def forward(self, ids):
        state = self.start(ids)
        for t in range(ids.shape[1]):
            state = self.call(self.cell, self.embed(ids[:, t]), state)
        return self.head(self.read(state))


def zero(ids):
    return torch.zeros(len(ids), D, dtype=torch.float64)


def first(state):
    return state[0]


def gru_in_a_loop():
    return Loop(OwnGRU(E, D), lambda cell, x, h: cell(x, h), zero)


def assert_same(found, expected, bound=1e-10):
    for one, other in (
        (found.triangle.contributions, expected.triangle.contributions),
        (found.triangle.scores, expected.triangle.scores),
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=bound)
    assert found.ledger.bias == pytest.approx(expected.ledger.bias, abs=bound)
    assert abs(found.ledger.remainder) < bound
    assert found.tokens == expected.tokens


class Stepped(OwnGRU):
    """A network of the user's own whose forward loops over its method ``step``."""

    def step(self, x, state):
        return OwnGRU.forward(self, x, state)

    def forward(self, xs, state=None):
        state = xs.new_zeros(len(xs), D) if state is None else state
        outputs = []
        for t in range(xs.shape[1]):
            state = self.step(xs[:, t], state)
            outputs.append(state)
        return torch.stack(outputs, dim=1), state


class Encoder(nn.Module):
    def __init__(self, rnn, pool=lambda found: found[1]):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head, self.pool = nn.Embedding(V, E), rnn, nn.Linear(D, 3), pool
        self.double().eval()

    def forward(self, ids):
        return self.head(self.pool(self.rnn(self.embed(ids))))


def lstm_step(x, h, c, weights, forget):
    """torch's step of an LSTM where ``forget`` is 0; weights and biases stand in torch's order."""
    i, f, g, o = (F.linear(x, weights[0], weights[2]) + F.linear(h, weights[1], weights[3])).chunk(4, dim=-1)
    c = torch.sigmoid(f + forget) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_step(x, h, weights, activation):
    """torch's step of a GRU where the activation is tanh."""
    xr, xz, xn = F.linear(x, weights[0], weights[2]).chunk(3, dim=-1)
    hr, hz, hn = F.linear(h, weights[1], weights[3]).chunk(3, dim=-1)
    z = torch.sigmoid(xz + hz)
    return z * h + (1 - z) * activation(xn + torch.sigmoid(xr + hr) * hn)
