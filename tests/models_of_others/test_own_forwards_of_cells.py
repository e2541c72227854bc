"""Subclasses of torch's cells: they are opened by what their forward computes, not by what their class is called."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from own_cells import IDS, D, E, Loop, assert_same, first, gru_step, lstm_step, zero
from unrolled.errors import UsageError


class OwnLSTMCell(nn.LSTMCell):
    forget = 0.0

    def forward(self, x, state):
        return lstm_step(x, *state, list(self.parameters()), self.forget)


class BiasedLSTMCell(OwnLSTMCell):
    """Other equations than torch's, with its weights and its name."""

    forget = 1.0


class OwnGRUCell(nn.GRUCell):
    activation = staticmethod(torch.tanh)

    def forward(self, x, h):
        return gru_step(x, h, list(self.parameters()), self.activation)


class ReluGRUCell(OwnGRUCell):
    activation = staticmethod(torch.relu)


class KernelCell(nn.LSTMCell):
    """Runs torch's kernel, and only drops in training."""

    def forward(self, x, state):
        h, c = super().forward(x, state)
        return F.dropout(h, 0.5, self.training), c


class ByHand(nn.Module):
    """The same step as a class of no relation to torch's cells, which was opened before."""

    def __init__(self, cell):
        super().__init__()
        self.weights, self.compute = nn.ParameterList(cell.parameters()), type(cell).forward
        self.forget, self.activation = getattr(cell, "forget", None), getattr(cell, "activation", None)

    def parameters(self, recurse=True):
        return iter(self.weights)

    def forward(self, x, state):
        return self.compute(self, x, state)


def made(kind):
    torch.manual_seed(1)
    return kind(E, D)


def lstm_loop(cell):
    return Loop(cell, lambda cell, x, s: cell(x, s), lambda ids: (zero(ids), zero(ids)), first)


def gru_loop(cell):
    return Loop(cell, lambda cell, x, h: cell(x, h), zero)


LOOPS = {  # whether it computes the same as torch's
    "LSTM": (lstm_loop, OwnLSTMCell, nn.LSTMCell, True),
    "LSTM of another gate": (lstm_loop, BiasedLSTMCell, nn.LSTMCell, False),
    "GRU": (gru_loop, OwnGRUCell, nn.GRUCell, True),
    "GRU of another activation": (gru_loop, ReluGRUCell, nn.GRUCell, False),
    "kernel": (lstm_loop, KernelCell, nn.LSTMCell, True),
}


def replaced(model, kind):
    """The same model with another class of cell."""
    cell = kind(E, D).double()
    cell.load_state_dict(model.cell.state_dict())
    model.cell = cell
    return model


def differs(one, other):
    return not torch.allclose(one.triangle.contributions, other.triangle.contributions, atol=1e-4)


@pytest.mark.quick_diagonal(2)  # quick: every subclass
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("rnn", [None, "cell"])
def test_a_subclass_of_a_cell_opens_by_its_own_forward(name, rnn):
    loop, kind, of_torch, same = LOOPS[name]
    model = loop(made(kind))
    found = unrolled.explain(model, IDS, target=1, rnn=rnn)
    assert [part.opens for part in unrolled.check(model, IDS, target=1).parts] == [True, True]
    if kind is not KernelCell:
        step = loop(made(kind))
        step.cell = ByHand(step.cell)
        assert_same(found, unrolled.explain(step, IDS, target=1))
    plain = unrolled.explain(replaced(loop(made(kind)), of_torch), IDS, target=1)
    if same:
        assert_same(found, plain)
    else:
        assert differs(found, plain)


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "kernel"])
def test_one_that_is_called_once_is_told_how_to_be_named(name):
    loop, kind, *_ = LOOPS[name]
    model = loop(made(kind))
    with pytest.raises(UsageError, match=r"cell.forward of \w+ takes a state and is called once.*pass rnn='cell'"):
        unrolled.explain(model, IDS[:, :1], target=1)
    assert abs(unrolled.explain(model, IDS[:, :1], target=1, rnn="cell").ledger.remainder) < 1e-14


class Beside(Loop):
    """A network of torch's below a cell of the user's own."""

    def __init__(self, cell):
        super().__init__(cell, lambda cell, x, s: cell(x, s), lambda ids: (zero(ids), zero(ids)), first)
        self.below = nn.GRU(E, E, batch_first=True).double()

    def forward(self, ids):
        state = self.start(ids)
        for x in self.below(self.embed(ids))[0].unbind(1):
            state = self.call(self.cell, x, state)
        return self.head(self.read(state))


def test_beside_a_network_of_torchs_both_are_opened():
    found = unrolled.explain(Beside(made(OwnLSTMCell)), IDS, target=1)
    assert_same(found, unrolled.explain(replaced(Beside(made(OwnLSTMCell)), nn.LSTMCell), IDS, target=1))
    below = unrolled.explain(Beside(made(OwnLSTMCell)), IDS, target=1, rnn="below")
    assert found.ledger.ngrams != pytest.approx(below.ledger.ngrams, abs=1e-3)


class Around(nn.LSTMCell):
    """Adds to one of torch's cells, which it holds, and runs no kernel of its own."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units)
        self.inner = nn.LSTMCell(inputs, units)

    def forward(self, x, state):
        h, c = self.inner(x, state)
        return h + 0.1 * torch.tanh(x.sum(dim=-1, keepdim=True)), c


def test_a_cell_around_one_of_torchs_opens_at_the_inner_one():
    found = unrolled.explain(lstm_loop(made(Around)), IDS, target=1)
    assert abs(found.ledger.remainder) < 1e-13
    assert found.exact
    assert_same(found, unrolled.explain(lstm_loop(made(Around)), IDS, target=1, rnn="cell.inner"))
