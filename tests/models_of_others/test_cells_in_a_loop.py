"""torch's cells in a Python loop, with position-wise functions of the state between the steps."""

from __future__ import annotations

import pytest
import torch
from tests.reference_secant import gru_step, lstm_step, rnn_step, terms
from torch import nn

import unrolled

V, E, D, T = 11, 4, 5, 6
IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])
STEPS = {nn.RNNCell: rnn_step, nn.GRUCell: gru_step, nn.LSTMCell: lstm_step}


class Loop(nn.Module):
    def __init__(self, kind, between=None):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(V, E), kind(E, D), nn.Linear(D, 3)
        self.between = between
        self.double().eval()

    def forward(self, ids):
        state = None
        for t in range(ids.shape[1]):
            state = self.cell(self.embed(ids[:, t]), state)
            if self.between is not None:
                state = (self.between(state[0]), state[1]) if isinstance(state, tuple) else self.between(state)
        return self.head(state[0] if isinstance(state, tuple) else state)


def reference(model, ids, passed=None):
    """The n-grams (i, t) of the last state by dense matrices; ``passed`` maps h between two steps as it was held."""
    cell = model.cell
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    lstm = isinstance(cell, nn.LSTMCell)
    state, gs, matrices = torch.zeros(D * (1 + lstm), dtype=torch.float64), [], []
    with torch.no_grad():
        for t, x in enumerate(model.embed(ids)):
            between = torch.eye(len(state), dtype=torch.float64)
            if t and passed is not None:
                held, shift = passed(state[-D:])
                between[-D:, -D:] = held
                state = between @ state
                state[-D:] += shift
            g, a, _ = STEPS[type(cell)](*weights, x, x, state)
            gs.append(g)
            matrices.append(a @ between)
            state = g + a @ state
    return terms(gs, matrices), state


@pytest.mark.parametrize("kind", list(STEPS))
def test_the_n_grams_are_those_of_the_formulas(kind):
    torch.manual_seed(0)
    model = Loop(kind)
    found = unrolled.explain(model, IDS, target=1)
    vectors, _ = reference(model, IDS[0])
    w = model.head.weight[1].detach()
    for (i, t), v in vectors.items():
        expected = float(w @ v[-D:]) if t == T - 1 else 0.0
        assert found.contribution(i, t + 1) == pytest.approx(expected, abs=1e-13)
        assert found.score(i, t + 1) == pytest.approx(float(w @ v[-D:]), abs=1e-13)
    assert found.ledger.bias == pytest.approx(model.head.bias[1].item(), abs=1e-13)
    assert abs(found.ledger.remainder) < 1e-14


@pytest.mark.parametrize("kind", list(STEPS))
def test_layer_norm_between_the_steps_is_held_and_the_loop_stays_one_sequence(kind):
    torch.manual_seed(0)
    norm = nn.LayerNorm(D)
    torch.nn.init.normal_(norm.weight)
    model = Loop(kind, norm)
    found = unrolled.explain(model, IDS, target=1)
    assert len(found) == T

    def passed(h):  # γ (h - mean h) / σ, of which σ is held; β is a bias
        scale = model.between.weight / (h.var(unbiased=False) + norm.eps).sqrt()
        return torch.diag(scale) @ (torch.eye(D, dtype=torch.float64) - 1 / D), model.between.bias

    vectors, last = reference(model, IDS[0], passed)
    held = passed(last[-D:])[0].detach()
    for i in range(T):
        expected = float(model.head.weight[1].detach() @ held @ vectors[i, T - 1][-D:])
        assert found.contribution(i, T) == pytest.approx(expected, abs=1e-13)
    assert abs(found.ledger.remainder) < 1e-14
    assert not any(found.contribution(i, t + 1) for i, t in vectors if t < T - 1)


def test_the_bias_of_the_norm_is_named_and_counted():
    torch.manual_seed(0)
    norm = nn.LayerNorm(D)
    torch.nn.init.normal_(norm.bias)
    found = unrolled.explain(Loop(nn.GRUCell, norm), IDS, target=1)
    assert abs(found.biases["between.bias"]) > 1e-3
    assert sum(found.biases.values()) == pytest.approx(found.ledger.bias, abs=1e-13)
    assert abs(found.ledger.remainder) < 1e-13


@pytest.mark.parametrize("between", [nn.Dropout(0.5), nn.Linear(D, D), nn.BatchNorm1d(D), nn.Tanh()], ids=str)
def test_other_position_wise_functions_between_the_steps(between):
    torch.manual_seed(0)
    found = unrolled.explain(Loop(nn.LSTMCell, between), IDS, target=1)
    assert len(found.sequences) == 1
    assert abs(found.ledger.remainder) < 1e-13


def test_zero_leaves_a_remainder():
    torch.manual_seed(0)
    model = Loop(nn.GRUCell, nn.LayerNorm(D))
    assert abs(unrolled.explain(model, IDS, target=1, expansion="zero").ledger.remainder) > 1e-3


def test_two_cells_above_each_other_are_the_network_of_two_layers():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.low, self.top = nn.Embedding(V, E), nn.LSTMCell(E, D), nn.LSTMCell(D, D)
            self.head = nn.Linear(D, 3)

        def forward(self, ids):
            low = top = None
            outs = []
            for t in range(ids.shape[1]):
                low = self.low(self.embed(ids[:, t]), low)
                top = self.top(low[0], top)
                outs.append(top[0])
            return self.head(torch.stack(outs).mean(0))

    class Plain(nn.Module):
        def __init__(self, cells):
            super().__init__()
            self.embed, self.head, self.net = cells.embed, cells.head, nn.LSTM(E, D, 2, batch_first=True).double()
            for level, cell in enumerate((cells.low, cells.top)):
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    setattr(self.net, f"{name}_l{level}", getattr(cell, name))

        def forward(self, ids):
            return self.head(self.net(self.embed(ids))[0].mean(1))

    torch.manual_seed(0)
    two = Two().double()
    found, expected = unrolled.explain(two, IDS, target=1), unrolled.explain(Plain(two), IDS, target=1)
    assert len(found.sequences) == 1
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, atol=1e-13, rtol=0)
    torch.testing.assert_close(found.triangle.scores, expected.triangle.scores, atol=1e-13, rtol=0)
