"""A step that receives one state twice reads it at both places, as a step that receives it once does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UnsupportedOperationError

X = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1))


@dataclass
class State:
    h: Tensor


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reads, self.keeps, self.turns = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def next(self, x: Tensor, one: Tensor, other: Tensor) -> State:
        return State(torch.tanh(self.reads(x) + self.keeps(one) * self.turns(other)))


class Once(Cell):
    def step(self, x: Tensor, state: State) -> State:
        return self.next(x, state.h, state.h)


class Twice(Cell):
    def step(self, x: Tensor, state: State, again: State) -> State:
        return self.next(x, state.h, again.h)


class Model(nn.Module):
    """Gives its cell the state as often as it takes it: the same object, or another one that holds the same tensor."""

    def __init__(self, kind: type[Cell], copies: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head, self.copies = kind(), nn.Linear(4, 2), copies

    def forward(self, x: Tensor) -> Tensor:
        state, step = State(torch.zeros(1, 4)), cast("Callable[..., State]", self.cell.step)
        for now in x.unbind(1):
            again = (State(state.h) if self.copies else state,) if isinstance(self.cell, Twice) else ()
            state = step(now, state, *again)
        logits: Tensor = self.head(state.h)
        return logits


@pytest.mark.parametrize("expansion", ["secant", "path"])
def test_one_state_that_is_given_twice_is_read_at_both_places(expansion: str) -> None:
    twice, once = (
        unrolled.explain(Model(kind, copies=False), X, target=1, expansion=expansion) for kind in (Twice, Once)
    )
    torch.testing.assert_close(twice.token_scores, once.token_scores)
    assert twice.notes == once.notes


def test_two_states_that_hold_one_tensor_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="state and again hold the same result of earlier calls"):
        unrolled.explain(Model(Twice, copies=True), X, target=1)
