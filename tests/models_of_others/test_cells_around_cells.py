"""A step of the user's own around a cell of torch is opened as a whole, if it is named by ``as_cell``."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from own_cells import IDS, D, E, Loop, OwnGRU, OwnLSTM, assert_same, first, zero

EXPANSIONS = ["secant", "shares", "path", "operating"]


class Mogrifier(nn.Module):
    """Input and hidden state gate each other before the step (Melis et al. 2020, arXiv:1909.01792)."""

    def __init__(self, inner):
        super().__init__()
        self.of_hidden, self.of_input, self.inner = nn.Linear(D, E), nn.Linear(E, D), inner

    def forward(self, x, state):
        h, c = state
        x = 2 * torch.sigmoid(self.of_hidden(h)) * x
        h = 2 * torch.sigmoid(self.of_input(x)) * h
        return self.inner(x, h, c) if isinstance(self.inner, OwnLSTM) else self.inner(x, (h, c))


class Zoneout(nn.Module):
    """Keeps a part of the old state (Krueger et al. 2017)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, h):
        return 0.8 * self.inner(x, h) + 0.2 * h


def of_torch(own, kind):
    """A cell of torch with the weights of one that is written out."""
    cell = kind(E, D).double()
    with torch.no_grad():
        for place, layer in (("ih", own.of_input), ("hh", own.of_state)):
            getattr(cell, f"weight_{place}").copy_(layer.weight)
            getattr(cell, f"bias_{place}").copy_(layer.bias)
    return cell


def pair(around, own, kind, start, read):
    """A model around a cell that is written out, and the same around a cell of torch."""
    model = Loop(around(own), lambda cell, x, state: cell(x, state), start, read)
    same = Loop(around(own), lambda cell, x, state: cell(x, state), start, read)
    same.load_state_dict(model.state_dict())
    same.cell.inner = of_torch(model.cell.inner, kind)
    return model, same


def mogrifiers():
    return pair(Mogrifier, OwnLSTM(E, D), nn.LSTMCell, lambda ids: (zero(ids), zero(ids)), first)


def zoneouts():
    return pair(Zoneout, OwnGRU(E, D), nn.GRUCell, zero, lambda state: state)


class Elman(nn.Module):
    """An Elman network by hand."""

    def __init__(self):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(E, D), nn.Linear(D, D)

    def forward(self, x, h):
        return torch.tanh(self.of_input(x) + self.of_state(h))


def elmans():
    return pair(Zoneout, Elman(), nn.RNNCell, zero, lambda state: state)


@pytest.mark.quick_diagonal(3)  # quick: every step, every expansion
@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("make", [mogrifiers, zoneouts, elmans], ids=["mogrifier", "zoneout", "elman"])
def test_a_step_around_a_cell_of_torch_is_one_around_the_cell_written_out(make, expansion):
    written, same = make()
    expected = unrolled.explain(written, IDS, target=1, expansion=expansion, rnn=unrolled.as_cell("cell"))
    found = unrolled.explain(same, IDS, target=1, expansion=expansion, rnn=unrolled.as_cell("cell"))
    assert found.exact
    assert found.notes == expected.notes
    assert_same(found, expected)


def test_the_terms_of_operating_are_products_of_the_jacobians_of_the_whole_step():
    _, model = mogrifiers()
    vectors, state, terms = model.embed(IDS)[0], torch.zeros(2 * D, dtype=torch.float64), []
    for x in vectors:

        def step(s, x=x):
            return torch.cat([each[0] for each in model.cell(x[None], (s[None, :D], s[None, D:]))])

        jacobian, after = torch.autograd.functional.jacobian(step, state), step(state).detach()
        terms = [*(jacobian @ term for term in terms), after - jacobian @ state]
        state = after
    expected = torch.stack([model.head.weight[1] @ term[:D] for term in terms]).detach()
    whole = unrolled.explain(model, IDS, target=1, expansion="operating", rnn=unrolled.as_cell("cell"))
    torch.testing.assert_close(whole.token_scores, expected, rtol=0, atol=1e-10)
    inner = unrolled.explain(model, IDS, target=1, expansion="operating")  # the control: the cell of torch alone
    assert float((inner.token_scores - expected).abs().max()) > 1e-4
