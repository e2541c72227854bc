"""The account of a network by shares closes, whatever the operations of its cell."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.cells.base import Cell
from unrolled.cells.recurrent import Recurrent

E, D = 4, 8
STEPS = {
    "a number and a content": lambda a, b, c, h: (1 + torch.tanh(a)) * torch.tanh(c) + b - b * h,
    "two of them": lambda a, b, c, h: (1 + torch.tanh(a)) * (2 - torch.tanh(b)) * torch.tanh(c) + 0.5 * h,
    "a gate by tanh": lambda a, b, c, h: (0.5 + 0.5 * torch.tanh(a)) * torch.tanh(c) + 0.1 * b * h,
    "a product of gates": lambda a, b, c, h: torch.sigmoid(a) * torch.sigmoid(b) * torch.tanh(c) + 0.5 * h,
    "a squared gate": lambda a, b, c, h: torch.sigmoid(a) ** 2 * torch.tanh(c) + 0.1 * b * h,
    "softplus": lambda a, b, c, h: F.softplus(a) * torch.tanh(c) + torch.sigmoid(b) * h,
    "a decay": lambda a, b, c, h: torch.exp(-F.softplus(a)) * h + torch.tanh(b + c),
    "bounds": lambda a, b, c, h: (1 + torch.tanh(a)).clamp(0.2, 1.5) * torch.tanh(c) + 0.1 * b * h,
}


class Stepped(Cell):
    """A cell of three products of the input and of the state, and any function of them."""

    name = "stepped"

    def __init__(self, input_size, hidden_size, function):
        super().__init__(input_size, hidden_size)
        self.of_input, self.of_state = (nn.Linear(size, 3 * hidden_size) for size in (input_size, hidden_size))
        self.function = function

    def step(self, inputs, state):
        return self.function(*(self.of_input(inputs) + self.of_state(state)).chunk(3, -1), state)


class Reads(nn.Module):
    def __init__(self, rnn):
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(D, 3)
        self.double()

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def account(rnn, expansion):
    model, x = Reads(rnn), torch.randn(2, 6, E, dtype=torch.float64)
    for parameter in rnn.parameters():
        parameter.data.mul_(1.5)
    found = unrolled.account(model, x, target=1, expansion=expansion)
    torch.testing.assert_close(found.output, model(x)[:, 1].detach())
    return found


def gap(found):
    return float((found.remainder / found.movement).abs().max())


@pytest.mark.quick_diagonal(3)  # quick: every cell, both expansions
@pytest.mark.parametrize("expansion", ["shares", "shares(0.3)"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", CELLS.names())
def test_every_cell_of_the_library_closes(name, layers, expansion):
    torch.manual_seed(0)
    layers = 1 if name in SLOTS else layers  # their units hold whole inputs
    found = account(recurrent(name, E, D, layers, batch_first=True), expansion)
    assert gap(found) < 1e-11
    assert found.exact


@pytest.mark.quick_diagonal(3)  # quick: every step, both expansions
@pytest.mark.parametrize("expansion", ["shares", "shares(0.3)"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("operations", STEPS)
def test_any_step_closes(operations, layers, expansion):
    def network():
        torch.manual_seed(0)
        return Recurrent(lambda e, d: Stepped(e, d, STEPS[operations]), E, D, layers, batch_first=True)

    found = account(network(), expansion)
    assert gap(found) < 1e-11
    assert found.exact
    assert gap(account(network(), "zero")) > 1e-6  # the control


class Written(nn.Module):
    """A GRU in a loop that begins with zeros, where the bias of the state's product is all there is of that product."""

    def __init__(self):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(E, 3 * D), nn.Linear(D, 3 * D)

    def forward(self, x):
        h = x.new_zeros(len(x), D)
        for given in x.unbind(1):
            (xr, xz, xn), (hr, hz, hn) = self.of_input(given).chunk(3, -1), self.of_state(h).chunk(3, -1)
            z = torch.sigmoid(xz + hz)
            h = (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h
        return h[:, None], h


def test_a_gru_by_hand_has_the_account_of_torchs():
    written, network = Reads(Written()), Reads(nn.GRU(E, D, batch_first=True))
    weights = written.state_dict()
    order = ("of_input.weight", "of_state.weight", "of_input.bias", "of_state.bias")
    for own, theirs in zip(network.rnn.parameters(), order, strict=True):
        own.data.copy_(weights[f"rnn.{theirs}"])
    network.head = written.head
    x = torch.randn(2, 3, E, dtype=torch.float64)
    found, expected, other = (
        unrolled.account(model, x, target=1, expansion=expansion)
        for model, expansion in ((written, "shares"), (network, "shares"), (network, "secant"))
    )
    torch.testing.assert_close(found.features["0"], expected.features["0"], rtol=0, atol=1e-12)
    torch.testing.assert_close([*found.biases.values()], [*expected.biases.values()], rtol=0, atol=1e-12)
    assert not found.constants
    assert float((found.features["0"] - other.features["0"]).abs().max()) > 1e-6  # the control
