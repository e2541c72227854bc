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
    series = torch.randn(1, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
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


@pytest.mark.parametrize("name", ["ones_like", "a tensor", "minus", "neg", "times minus one", "rsub"])
def test_a_complement_in_a_cell_is_written_in_any_way(name, plain):
    assert_same_ngrams(shares(lambda z: z, COMPLEMENTS[name]), plain)


def test_what_is_no_gate_has_other_shares(plain):
    """The control."""
    found = shares(lambda z: (z + 0.5 * (z * z)) - 0.5 * (z * z))
    assert float((found.triangle.contributions - plain.triangle.contributions).abs().max()) > 1e-3
