"""A network that draws random numbers is refused by the name of what draws, as in explain; modes change nothing."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

import unrolled
from unrolled.cells.base import Cell
from unrolled.errors import RandomOperationError

E, D, T = 4, 5, 6


class Noisy(nn.LSTM):
    """Adds noise to its outputs, in evaluation mode too."""

    size = 0.1

    def forward(self, input, hx=None):
        out, state = super().forward(input, hx)
        return out + self.size * torch.randn_like(out), state


class Dropped(nn.GRU):
    def forward(self, input, hx=None):
        return super().forward(nn.functional.dropout(input, 0.5), hx)


class Timed(nn.GRU):
    """Draws from a source that is no generator of torch's."""

    def forward(self, input, hx=None):
        return super().forward(input * random.random(), hx)


class NoisyCell(Cell):
    name = "noisy"

    def __init__(self):
        super().__init__(E, D)
        self.w, self.u = nn.Linear(E, D), nn.Linear(D, D)

    def step(self, inputs, state):
        return torch.tanh(self.w(inputs) + self.u(state) + 0.1 * torch.randn(D))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Noisy(E, D), "randn_like"),
        (lambda: Dropped(E, D), "dropout of 0.5"),
        (lambda: Timed(E, D), "Python's random"),
        (NoisyCell, "randn"),
    ],
)
def test_what_draws_is_named(make, name):
    torch.manual_seed(0)
    state = torch.get_rng_state(), random.getstate()
    rnn = make()
    before = torch.get_rng_state()
    with pytest.raises(RandomOperationError, match=name) as told:
        unrolled.decompose(rnn, torch.randn(T, 1, E, generator=torch.Generator().manual_seed(1)))
    assert "\n" not in str(told.value)
    assert "seed=" not in str(told.value)
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == state[1]


def test_noise_below_the_tolerance_of_parity_is_found_as_well():
    class Quiet(Noisy):
        size = 1e-4

    with pytest.raises(RandomOperationError, match="randn_like"):
        unrolled.decompose(Quiet(E, D), torch.randn(T, 1, E))


def test_draws_that_change_nothing_are_no_error():
    class Idle(nn.GRU):
        def forward(self, input, hx=None):
            torch.rand(3)
            return super().forward(input, hx)

    rnn = Idle(E, D)
    x = torch.randn(T, 2, E)
    before = torch.get_rng_state()
    assert unrolled.decompose(rnn, x).parity < 1e-6
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_between_layers_is_off_whatever_the_mode():
    torch.manual_seed(0)
    rnn = nn.LSTM(E, D, num_layers=3, dropout=0.5)
    x = torch.randn(T, 2, E)
    found = unrolled.decompose(rnn.train(), x)
    assert rnn.training
    torch.testing.assert_close(found.vectors(), unrolled.decompose(rnn.eval(), x).vectors(), rtol=0, atol=0)


def test_a_network_that_draws_nothing_runs_once():
    class Counted(nn.GRU):
        runs = 0

        def forward(self, input, hx=None):
            Counted.runs += 1
            return super().forward(input, hx)

    unrolled.decompose(Counted(E, D), torch.randn(T, 2, E))
    assert Counted.runs == 1
