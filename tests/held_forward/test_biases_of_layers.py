"""The bias of a layer: one that alone carries value, and one of a convolution without an axis of examples."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

IDS = torch.tensor([[1, 4, 2, 3]])
HELD = torch.randn(1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Layers(nn.Module):
    """Holds the weights of the functions below."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.matrix, self.kernel = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4, 1, 3))
        self.bias = nn.Parameter(torch.randn(4))

    def linear(self, h):
        return F.linear(HELD, self.matrix, h[0])

    def product_and_sum(self, h):
        return HELD @ self.matrix.mT + h[0]

    def convolution(self, h):
        return F.conv1d(HELD[None], self.kernel, h[0], padding=1)[:, :, 1]

    def convolution_and_sum(self, h):
        return F.conv1d(HELD[None], self.kernel, padding=1)[:, :, 1] + h[0]

    def without_examples(self, h):
        return F.conv1d(h, self.kernel, self.bias, padding=1)[:, 1][None]

    def with_one_example(self, h):
        return F.conv1d(h[None], self.kernel, self.bias, padding=1)[:, :, 1]


class Behind(nn.Module):
    """Reads the last state through a layer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.layers = Layers()
        self.embed, self.head, self.name = nn.Embedding(5, 4), nn.Linear(4, 2), name
        self.rnn = nn.GRU(4, 4, batch_first=True)
        self.double()

    def forward(self, ids):
        return self.head(getattr(self.layers, self.name)(self.rnn(self.embed(ids))[0][:, -1]))


class Cell(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.layers, self.name = Layers(), name

    def forward(self, x, h):
        return torch.tanh(x + 0.3 * getattr(self.layers, self.name)(h))


class Inside(nn.Module):
    """Runs a cell that holds a layer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.cell, self.embed, self.head = Cell(name), nn.Embedding(5, 4), nn.Linear(4, 2)
        self.double()

    def forward(self, ids):
        h = HELD.new_zeros(1, 4)
        for x in self.embed(ids).unbind(1):
            h = self.cell(x, h)
        return self.head(h)


PAIRS = [
    ("linear", "product_and_sum"),
    ("convolution", "convolution_and_sum"),
    ("without_examples", "with_one_example"),
]


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_an_account_of_a_layer_is_that_of_its_parts(name, other):
    for kind in (Behind, Inside):
        found, expected = (unrolled.account(kind(each), IDS, target=1) for each in (name, other))
        assert found.exact
        torch.testing.assert_close(found.texts, expected.texts)
        torch.testing.assert_close(found.biases, expected.biases)
        torch.testing.assert_close(found.constants, expected.constants)


@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_a_step_that_holds_a_layer_is_explained_as_by_its_parts(name, other, expansion):
    found, expected = (unrolled.explain(Inside(each), IDS, target=1, expansion=expansion) for each in (name, other))
    assert found.exact
    torch.testing.assert_close(found.triangle.scores, expected.triangle.scores)
