"""Operands in a tuple with names, as a model may keep its states, are those of a plain tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import unrolled


class State(NamedTuple):
    """The state of an LSTM, as a model of its own names it."""

    hidden: Tensor
    cell: Tensor


Made = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def named(hidden: Tensor, cell: Tensor) -> State:
    return State(hidden, cell)


def plain(hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    return hidden, cell


class Model(nn.Module):
    """Gives its network a state, and joins vectors, both as some kind of tuple."""

    def __init__(self, made: Made) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(10, 3)
        self.rnn: nn.Module = nn.LSTM(4, 5, batch_first=True)
        self.start, self.made = nn.Parameter(torch.randn(2, 1, 1, 5)), made

    def forward(self, tokens: Tensor) -> Tensor:
        ids = torch.cat(self.made(tokens[:, :2], tokens[:, 2:]), dim=1)
        states, (last, _) = self.rnn(self.embed(ids), self.made(*self.start))
        output: Tensor = self.head(torch.cat(self.made(states.mean(1), last[0]), dim=-1))
        return output


class Written(Model):
    """The same by a step of its own."""

    def __init__(self, made: Made) -> None:
        super().__init__(made)
        self.rnn = Step(made)

    def forward(self, tokens: Tensor) -> Tensor:
        h = torch.zeros(len(tokens), 5)
        for x in self.embed(tokens).unbind(1):
            h = self.rnn(x, h)
        output: Tensor = self.head(torch.cat(self.made(h, h), dim=-1))
        return output


class Step(nn.Module):
    """A step that joins its operands."""

    def __init__(self, made: Made) -> None:
        super().__init__()
        self.linear, self.made = nn.Linear(9, 5), made

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.linear(torch.cat(self.made(x, h), dim=-1)))


@pytest.mark.parametrize("kind", [Model, Written])
@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_a_tuple_with_names_is_a_tuple(kind: type[Model], expansion: str) -> None:
    tokens = torch.tensor([[1, 5, 2, 4]])
    found, expected = (unrolled.account(kind(made), tokens, target=1, expansion=expansion) for made in (named, plain))
    assert found.closes
    torch.testing.assert_close(found.texts["0"], expected.texts["0"], rtol=0, atol=0)
    assert found.texts["0"].any()
    turned = kind(lambda one, other: named(other, one) if one.shape == other.shape else named(one, other))
    other = unrolled.account(turned, tokens, target=1, expansion=expansion)  # the control
    assert kind is Written or not torch.allclose(other.texts["0"], expected.texts["0"])  # whose two states are one
    rnn = unrolled.as_cell("rnn") if kind is Written else None
    explained, by_plain = (unrolled.explain(kind(made), tokens, target=1, rnn=rnn) for made in (named, plain))
    torch.testing.assert_close(explained.triangle.contributions, by_plain.triangle.contributions, rtol=0, atol=0)
