"""A model that makes a layer in its first call is refused as that until it was called; a layer that draws is not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import RandomOperationError

X = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(0))


class MakesItsHead(nn.Module):
    """Makes its last layer when it knows how many numbers that layer reads."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 5, batch_first=True)
        self.head: nn.Linear | None = None

    def forward(self, x: Tensor) -> Tensor:
        last = self.rnn(x)[0][:, -1]
        if self.head is None:
            self.head = nn.Linear(last.shape[1], 2)
        logits: Tensor = self.head(last)
        return logits


class Draws(MakesItsHead):
    """Draws random numbers beside that, in every call."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.randn(2)


MAKES = r"the model makes head\.weight, head\.bias in its first call, of random numbers; call the model once before"


def test_a_layer_that_the_first_call_makes_is_named_and_the_advice_helps() -> None:
    model = MakesItsHead()
    with pytest.raises(RandomOperationError, match=MAKES):
        unrolled.explain(model, X, target=1)
    with pytest.raises(RandomOperationError, match=MAKES):
        unrolled.account(model, X, target=1)
    assert model.head is None
    expected = float(model(X)[0, 1].detach())
    assert unrolled.explain(model, X, target=1).ledger.logit == pytest.approx(expected, abs=1e-6)
    assert unrolled.account(model, X, target=1).closes


def test_what_a_call_draws_is_named_where_the_layer_is_there() -> None:
    model = Draws()
    model(X)
    for opens in (unrolled.explain, unrolled.account):
        with pytest.raises(RandomOperationError, match="randn draws random numbers; switch that off"):
            opens(model, X, target=1)


class MakesOneEachCall(nn.Module):
    """Makes a layer in every call, and keeps it under a new name."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.made = nn.GRU(3, 5, batch_first=True), nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        self.made.append(nn.Linear(5, 2))
        logits: Tensor = self.made[-1](self.rnn(x)[0][:, -1])
        return logits


def test_a_seed_is_suggested_since_a_call_before_does_not_help_where_every_call_makes_a_layer() -> None:
    model = MakesOneEachCall()
    model(X)
    for opens in (unrolled.explain, unrolled.account):
        with pytest.raises(
            RandomOperationError, match=r"call the model once before, or pass seed=0, which calls torch"
        ):
            opens(model, X, target=1)
    found = unrolled.explain(model, X, target=1, seed=0)
    assert found.ledger.logit == pytest.approx(float(unrolled.account(model, X, target=1, seed=0).output), abs=1e-6)
    assert len(model.made) == 1
