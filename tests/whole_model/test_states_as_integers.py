"""Integers that a model makes of a network's states are held: the account is that of the same numbers as constants."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

X = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
BORDERS = torch.linspace(-1, 1, 8, dtype=torch.float64)

INTEGERS = {
    "long": lambda h: (4 * h[:, 0]).long().abs(),
    "to": lambda h: (4 * h[:, 0]).to(torch.int64).abs(),
    "int": lambda h: (4 * h[:, 0]).int().abs(),
    "rounded": lambda h: (4 * h[:, 0]).round().long().abs(),
    "bucketize": lambda h: torch.bucketize(h[:, 0].contiguous(), BORDERS),
}


class Model(nn.Module):
    """Looks a vector up at an integer that it makes of its last state, or at given ones."""

    def __init__(self, kind, integers):
        super().__init__()
        torch.manual_seed(1)
        self.rnn, self.table, self.head = kind(3, 4, 2, batch_first=True), nn.Embedding(9, 4), nn.Linear(4, 2)
        self.integers = integers
        self.double()

    def forward(self, x):
        h = self.rnn(x)[0][:, -1]
        return self.head(h * self.table(self.integers(h)))


@pytest.mark.quick_diagonal(2)  # quick: every name, every expansion
@pytest.mark.parametrize("expansion", ["secant", "gates", "shares"])
@pytest.mark.parametrize("name", INTEGERS)
def test_a_vector_at_them_is_a_held_factor(name, expansion):
    model = Model(nn.GRU, INTEGERS[name])
    ids = INTEGERS[name](model.rnn(X)[0][:, -1].detach())
    found, fixed, others = (
        unrolled.account(Model(nn.GRU, integers), X, target=0, expansion=expansion)
        for integers in (INTEGERS[name], lambda _: ids, lambda _: ids + 1)
    )
    assert found.closes
    torch.testing.assert_close(found.features["0"], fixed.features["0"], rtol=1e-12, atol=1e-14)
    assert not torch.allclose(found.features["0"], others.features["0"], atol=1e-3)  # the control: other ids


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM])
def test_of_any_network(kind):
    assert unrolled.account(Model(kind, INTEGERS["long"]), X, target=0).closes
