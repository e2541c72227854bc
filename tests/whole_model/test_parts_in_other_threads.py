"""An account refuses a model in which another thread computes a part: the part depends on the tokens."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UnsupportedOperationError

TOKENS = torch.tensor([[1, 5, 2, 4]])


def here(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    return part(value)


def elsewhere(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(part, value).result()


class TwoTables(nn.Module):
    """Adds two vectors of each token."""

    def __init__(self, second: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor], bent: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.other = nn.Embedding(10, 4), nn.Embedding(10, 4)
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.second, self.bent = second, bent

    def forward(self, tokens: Tensor) -> Tensor:
        other = self.second(lambda ids: self.other(ids).tanh() if self.bent else self.other(ids), tokens)
        output: Tensor = self.head(self.rnn(self.one(tokens) + other)[0][:, -1])
        return output


@pytest.mark.parametrize(
    ("bent", "frozen", "message"),
    [
        (False, False, "looks up vectors of other in another thread"),
        (False, True, "looks up vectors of other in another thread"),
        (True, False, "is not linear"),
    ],
)
def test_vectors_that_another_thread_looks_up_are_no_numbers(bent: bool, frozen: bool, message: str) -> None:
    for second in (here, elsewhere):
        model = TwoTables(second, bent)
        model.other.requires_grad_(not frozen)
        if second is here:  # the control
            assert unrolled.account(model, TOKENS, target=1).closes
        else:
            with pytest.raises(UnsupportedOperationError, match=message):
                unrolled.account(model, TOKENS, target=1)


def test_what_another_thread_computes_in_front_of_the_network_changes_no_explanation() -> None:
    found, plain = (unrolled.explain(TwoTables(each), TOKENS, target=1) for each in (elsewhere, here))
    torch.testing.assert_close(found.triangle.contributions, plain.triangle.contributions, rtol=0, atol=0)
    assert found.notes == plain.notes


def test_another_thread_that_uses_the_model_as_well_is_not_of_the_run() -> None:
    model = TwoTables(here)
    expected, made = unrolled.account(model, TOKENS, target=1).texts["0"], []
    with ThreadPoolExecutor(1) as pool:

        def meanwhile(*_: object) -> None:
            made.append(pool.submit(model.other, TOKENS).result())

        model.head.register_forward_pre_hook(meanwhile)
        found = unrolled.account(model, TOKENS, target=1)
    torch.testing.assert_close(found.texts["0"], expected, rtol=0, atol=0)
    assert made
