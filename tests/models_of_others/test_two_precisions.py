"""A model that computes in float64 and in float32: what is asked of it is the accuracy of the coarser type."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

FINE, COARSE = torch.float64, torch.float32
D = 6
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [8, 9, 7, 9, 3]])


class Step(nn.Module):
    """A step of the user's own."""

    def __init__(self):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(4, D), nn.Linear(D, D)

    def forward(self, x, h):
        return torch.tanh(self.of_input(x) + self.of_state(h))


def run_network(rnn, x):
    return rnn(x)[0][:, -1]


def run_network_twice(rnn, x):
    _, last = rnn(x[:, :2])
    return rnn(x[:, 2:], last)[0][:, -1]


def run_cell(cell, x):
    state = None
    for each in x.unbind(1):
        state = cell(each, state)
    return state[0]


def run_step(step, x):
    h = x.new_zeros(len(x), D)
    for each in x.unbind(1):
        h = step(each, h)
    return h


KINDS = {
    "network": (lambda: nn.LSTM(4, D, batch_first=True), run_network),
    "network called twice": (lambda: nn.LSTM(4, D, batch_first=True), run_network_twice),
    "cell": (lambda: nn.LSTMCell(4, D), run_cell),
    "own step": (Step, run_step),
}
TYPES = {  # of the network, of the head, of the output
    "a coarse head": (FINE, COARSE, COARSE),
    "a coarse head, a fine output": (FINE, COARSE, FINE),
    "a coarse network": (COARSE, FINE, FINE),
}


class Mixed(nn.Module):
    def __init__(self, kind, types=(FINE, FINE, FINE), activation=nn.Tanh):
        super().__init__()
        torch.manual_seed(0)
        make, self.run = KINDS[kind]
        self.types = types
        self.embed, self.rnn = nn.Embedding(30, 4).double(), make().to(types[0])
        self.head = nn.Sequential(nn.Linear(D, 8), activation(), nn.Linear(8, 3)).to(types[1])
        self.eval()

    def forward(self, tokens):
        states = self.run(self.rnn, self.embed(tokens).to(self.types[0]))
        return self.head(states.to(self.types[1])).to(self.types[2])


@pytest.mark.quick_diagonal(3)  # quick: every kind, every pair of types
@pytest.mark.parametrize("readout", ["held", "ray"])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_explanation_is_that_of_the_model_in_float64(kind, types, readout):
    if readout == "ray" and kind != "network":  # which opens one network, called once
        return
    options = {"target": 1, "readout": readout}
    fine = unrolled.explain_batch(Mixed(kind), IDS, **options)
    coarse = unrolled.explain_batch(Mixed(kind, TYPES[types]), IDS, **options)
    for found, expected in zip(coarse, fine, strict=True):
        torch.testing.assert_close(found.token_scores, expected.token_scores, atol=1e-6, rtol=0)
        assert found.exact
        assert not any("ray" in note for note in found.notes)
        assert (found.rounding, expected.rounding) == (torch.finfo(COARSE).eps, torch.finfo(FINE).eps)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_a_ray_looks_at_a_coarse_head_no_more_often_than_in_a_coarse_model(activation):
    counts = []
    for types in [TYPES["a coarse head"], *TYPES.values()]:
        model, looks = Mixed("network", types, activation), []
        model.head.register_forward_hook(lambda *_, looks=looks: looks.append(1))
        assert abs(unrolled.explain(model, IDS[:1], target=1, readout="ray").ledger.remainder) < 1e-6
        counts.append(len(looks))
    assert max(counts) <= 2 * counts[0]


class Joined(Mixed):
    """Adds a ten-thousandth of what the other examples have."""

    def forward(self, tokens):
        out = super().forward(tokens)
        return out + 1e-4 * out.flip(0)


@pytest.mark.quick_diagonal(3)  # quick: every kind, every pair of types
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("kind", ["network called twice", "cell", "own step"])
def test_an_example_that_reads_another_by_more_than_rounding_is_refused(kind, types):
    with pytest.raises(UsageError, match="depends on the states of another"):
        unrolled.explain_batch(Joined(kind, TYPES[types]), IDS, target=1)


@pytest.mark.quick_diagonal(3)  # quick: every kind, every pair of types
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_account_is_that_of_the_model_in_float64(kind, types):
    models = Mixed(kind, TYPES[types]), Mixed(kind)
    found, expected = (unrolled.account(model, IDS, target=1) for model in models)
    torch.testing.assert_close(found.tokens.double(), expected.tokens, atol=1e-6, rtol=0)
    assert found.closes
    assert float(expected.remainder.abs().max()) < 1e-14
