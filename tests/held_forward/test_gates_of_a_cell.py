"""A gate of a cell that a user wrote is a gate however it is written: its shares do not change."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from own_cells import OwnGRU
from written_complements import COMPLEMENTS


class Written(OwnGRU):
    """A GRU by hand whose gates pass through an operation, and whose complement is written in some way."""

    def __init__(self, operation, complement):
        super().__init__(3, 5)
        self.operation, self.complement = operation, complement

    def forward(self, x, h):
        xr, xz, xn = self.of_input(x).chunk(3, dim=1)
        hr, hz, hn = self.of_state(h).chunk(3, dim=1)
        r, z = (self.operation(torch.sigmoid(each)) for each in (xr + hr, xz + hz))
        n = torch.tanh(xn + r * hn)
        return self.complement(z) * n + z * h


class Loop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(5, 2)

    def forward(self, xs):
        h = xs.new_zeros(len(xs), 5)
        for x in xs.unbind(1):
            h = self.cell(x, h)
        return self.head(h)


def one_minus(z):
    return 1 - z


def shares(operation, complement=one_minus, expansion="shares"):
    torch.manual_seed(0)
    model = Loop(Written(operation, complement)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    series = torch.randn(1, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return unrolled.explain(model, series, target=1, expansion=expansion)


OF_A_CELL = {
    "clone": lambda z: z.clone(),
    "detach": lambda z: z.detach(),
    "contiguous": lambda z: z.contiguous(),
    "transposed": lambda z: z.t().contiguous().t(),
    "double": lambda z: z.double(),
    "type_as": lambda z: z.type_as(z.detach()),
    "view_as": lambda z: z.reshape(-1).view_as(z),
    "expand_as": lambda z: z.expand_as(z),
    "unbind": lambda z: torch.stack(z.unbind(1), 1),
    "permute": lambda z: z.permute(1, 0).permute(1, 0),
    "flatten": lambda z: z[:, :, None].flatten(1),
    "flip": lambda z: z.flip(1).flip(1),
    "repeat": lambda z: z.repeat(1, 2)[:, :5],
    "cat": lambda z: torch.cat([z[:, :2], z[:, 2:]], 1),
    "cat with ones": lambda z: torch.cat([z, torch.ones_like(z[:, :1])], 1)[:, :5],
    "pad": lambda z: F.pad(z, (0, 1), value=1.0)[:, :5],
    "dropout": lambda z: F.dropout(z, 0.5, False),
    "times one": lambda z: 1 * z,
    "times ones": lambda z: z * torch.ones_like(z),
    "half of twice": lambda z: (2 * z) / 2,
    "plus zero": lambda z: z + 0,
    "clamp": lambda z: z.clamp(0, 1),
    "masked_fill": lambda z: z.masked_fill(torch.zeros_like(z) > 0, 3.0),
    "in place": lambda z: z.mul_(2).div_(2),
}


@pytest.fixture(scope="module")
def plain():
    """The shares of the cell whose gate is used as it is."""
    return shares(lambda z: z)


def assert_same_ngrams(found, expected):
    assert abs(found.ledger.remainder) < 1e-12
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", OF_A_CELL)
def test_an_identity_operation_changes_no_share_of_a_cell(name, plain):
    assert_same_ngrams(shares(OF_A_CELL[name]), plain)


def test_what_a_bound_of_a_cell_gave_is_another_tensor():
    """It is changed in place, and the gate itself is used."""

    def bounded(z):
        z.clamp(0, 1).mul_(2)
        return z

    assert_same_ngrams(shares(bounded, expansion="secant"), shares(lambda z: z, expansion="secant"))


@pytest.mark.parametrize(
    "name", ["ones_like", "ones expanded as it", "a tensor", "minus", "neg", "times minus one", "rsub"]
)
def test_a_complement_in_a_cell_is_written_in_any_way(name, plain):
    assert_same_ngrams(shares(lambda z: z, COMPLEMENTS[name]), plain)


def test_what_is_no_gate_has_other_shares(plain):
    """The control."""
    found = shares(lambda z: (z + 0.5 * (z * z)) - 0.5 * (z * z))
    assert float((found.triangle.contributions - plain.triangle.contributions).abs().max()) > 1e-3


class Joined(nn.Module):
    """An LSTM by hand; ``form`` computes its gates i, f, o and its contents from their sums."""

    def __init__(self, form):
        super().__init__()
        self.of_input, self.of_state, self.form = nn.Linear(3, 20), nn.Linear(5, 20), form

    def forward(self, x, h, c):
        i, f, o, g = self.form(self.of_input(x) + self.of_state(h))
        c = self.add(i, f, g, c)
        return o * torch.tanh(c), c

    def add(self, i, f, g, c):
        return f * c + i * g


class AtOnce(Joined):
    """Multiplies gates and contents at once, in both orders."""

    def add(self, i, f, g, c):
        return torch.stack(torch.split(torch.cat([f, g], 1) * torch.cat([c, i], 1), 5, 1)).sum(0)


class LoopOfTwo(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(5, 2)

    def forward(self, xs):
        h = c = xs.new_zeros(len(xs), 5)
        for x in xs.unbind(1):
            h, c = self.cell(x, h, c)
        return self.head(h)


def explained(cell, expansion="shares"):
    torch.manual_seed(0)
    model = LoopOfTwo(cell).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    series = torch.randn(1, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return unrolled.explain(model, series, target=1, expansion=expansion)


def apart(z):
    return (*(each.sigmoid() for each in z[:, :15].chunk(3, 1)), z[:, 15:].tanh())


def joined(z):
    return torch.cat([z[:, :15].sigmoid(), z[:, 15:].tanh()], 1)


def chosen(z):
    return torch.where(torch.arange(20) < 15, z.sigmoid(), z.tanh()).chunk(4, 1)


FORMS = {
    "cat": lambda z: joined(z).chunk(4, 1),
    "stack": lambda z: torch.stack(apart(z)),
    "where": chosen,
    "moved": lambda z: joined(z).clone().view(-1, 4, 5).transpose(0, 1),
    "complement of a complement": lambda z: (1 - (1 - joined(z))).chunk(4, 1),
    "padded": lambda z: F.pad(joined(z), (1, 0), value=1.0)[:, 1:].chunk(4, 1),
    "beside numbers": lambda z: torch.cat([joined(z), torch.ones_like(z)], 1)[:, :20].chunk(4, 1),
}


@pytest.mark.quick_diagonal(3)  # quick: every form, every expansion
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("expansion", ["shares", "shares(0.25)", "secant"])
def test_gates_and_contents_of_a_cell_in_one_tensor_are_told_apart(name, expansion):
    assert_same_ngrams(explained(Joined(FORMS[name]), expansion), explained(Joined(apart), expansion))


@pytest.mark.parametrize("expansion", ["shares", "secant"])
def test_gates_and_contents_may_be_multiplied_at_once(expansion):
    assert_same_ngrams(explained(AtOnce(apart), expansion), explained(Joined(apart), expansion))


def test_gates_by_another_formula_beside_contents_have_other_shares():
    """The control: (1 + tanh(z / 2)) / 2 = σ(z), and it is no gate."""

    def no_gates(z):
        return torch.cat([0.5 + 0.5 * (0.5 * z[:, :15]).tanh(), z[:, 15:].tanh()], 1).chunk(4, 1)

    found, expected = explained(Joined(no_gates)), explained(Joined(apart))
    assert float((found.triangle.contributions - expected.triangle.contributions).abs().max()) > 1e-3
