"""A cell of torch's inside a larger step of the user's own: what else the step remembers is said not to be opened."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SERIES = torch.randn(1, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class HyperCell(nn.Module):
    """The step of a network whose gates are scaled by a smaller network (HyperLSTM)."""

    def __init__(self):
        super().__init__()
        self.hyper, self.scale = nn.LSTMCell(9, 4), nn.Linear(4, 24)
        self.x, self.h = nn.Linear(3, 24), nn.Linear(6, 24, bias=False)

    def forward(self, x, state):
        h, c, *small = state
        small = self.hyper(torch.cat([x, h], 1), tuple(small))
        i, f, o, g = (self.scale(small[0]) * (self.x(x) + self.h(h))).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c, *small


class Zoneout(nn.Module):
    """A step that remembers what its cell does."""

    def __init__(self):
        super().__init__()
        self.inner = nn.LSTMCell(3, 6)

    def forward(self, x, state):
        new = self.inner(x, tuple(state))
        return tuple(0.8 * after + 0.2 * before for after, before in zip(new, state, strict=True))


class Loop(nn.Module):
    def __init__(self, cell, sizes):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head, self.sizes = cell(), nn.Linear(6, 2), sizes

    def forward(self, xs):
        state = [xs.new_zeros(len(xs), size) for size in self.sizes]
        for x in xs.unbind(1):
            state = self.cell(x, state)
        return self.head(state[0])


HYPER = (HyperCell, (6, 6, 4, 4))


def about_the_step(found):
    return [note for note in found.notes if "whose own state is not opened" in note]


@pytest.mark.parametrize("rnn", [None, "cell", "cell.hyper"])
def test_a_step_that_remembers_more_than_its_cell_is_named(rnn):
    (note,) = about_the_step(unrolled.explain(Loop(*HYPER).double(), SERIES, target=1, rnn=rnn))
    assert "those of cell.hyper inside the step cell" in note
    assert "rnn=unrolled.as_cell('cell') opens the whole step" in note


def test_what_the_note_advises_opens_the_whole_step():
    model = Loop(*HYPER).double()
    found = unrolled.explain(model, SERIES, target=1, rnn=unrolled.as_cell("cell"))
    assert not about_the_step(found)
    assert abs(found.ledger.remainder) < 1e-12
    assert found.ledger.bias == pytest.approx(model.head.bias[1].item(), abs=1e-12)
    inner = unrolled.explain(model, SERIES, target=1)
    assert abs(inner.ledger.bias - found.ledger.bias) > 1e-3  # the control: there the rest of the step is in the bias


def test_a_step_that_remembers_what_its_cell_does_is_not_named():
    assert not about_the_step(unrolled.explain(Loop(Zoneout, (6, 6)).double(), SERIES, target=1))


class Beside(nn.Module):
    """A step that returns a tensor more than its cell does."""

    def __init__(self, function):
        super().__init__()
        self.inner, self.function, self.scale = nn.LSTMCell(3, 6), function, nn.Linear(6, 6)

    def forward(self, x, state):
        h, c, more = state
        h, c = self.inner(x * (1 + more[:, :3]).sigmoid(), (h, c))
        return h, c, self.function(self, h, more)


NOT_OF_ITS_OWN = {
    "a counter": lambda _cell, _h, more: more + 1,
    "what never changes": lambda _cell, _h, more: more.clone(),
    "the state of the cell": lambda _cell, h, _more: h,
}
OF_ITS_OWN = {
    "a recurrence": lambda cell, h, more: torch.tanh(cell.scale(more) + h),
    "one that is changed in place": lambda cell, h, more: more.copy_(torch.tanh(cell.scale(more) + h)),
}


@pytest.mark.parametrize("name", [*NOT_OF_ITS_OWN, *OF_ITS_OWN])
def test_a_counter_and_what_stands_twice_are_no_state_of_its_own(name):
    model = Loop(lambda: Beside({**NOT_OF_ITS_OWN, **OF_ITS_OWN}[name]), (6, 6, 6)).double()
    assert len(about_the_step(unrolled.explain(model, SERIES, target=1))) == (name in OF_ITS_OWN)
