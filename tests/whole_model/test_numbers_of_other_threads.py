"""What another thread makes of ids has a name in an account; value that it gives to Python is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UnsupportedOperationError

TOKENS = torch.tensor([[1, 5, 2, 4]])
POOL = ThreadPoolExecutor(1)
POOL.submit(str).result()  # its thread is there before any run


def here(part: Callable[..., Any], *values: Tensor) -> Any:
    return part(*values)


def of_pool(part: Callable[..., Any], *values: Tensor) -> Any:
    return POOL.submit(part, *values).result()


def mapped(part: Callable[..., Any], *values: Tensor) -> Any:
    with ThreadPool(1) as pool:
        return pool.starmap(part, [values])[0]


def started(part: Callable[..., Any], *values: Tensor) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(part(*values)))
    thread.start()
    thread.join()
    return found[0]


WAYS = [of_pool, mapped, started]


class Classifier(nn.Module):
    """Lets another thread do a part of its forward."""

    def __init__(self, by: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.table = nn.Embedding(10, 4), nn.Parameter(torch.randn(10, 4))
        self.rnn, self.head, self.by = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3), by

    def read(self, vectors: Tensor) -> Tensor:
        output: Tensor = self.head(self.rnn(vectors)[0][:, -1])
        return output


class Adds(Classifier):
    def __init__(self, by: Callable[..., Any], part: Callable[..., Tensor]) -> None:
        super().__init__(by)
        self.part = part

    def forward(self, tokens: Tensor) -> Tensor:
        output = self.read(self.embed(tokens))
        return output + self.by(self.part, tokens, output).float()


ADDED = {
    "numbers that div made of ids in another thread": lambda ids, _: (ids / 8)[:, :3],
    "numbers that sum made of ids in another thread": lambda ids, _: ids.sum(1, keepdim=True),
    "masks": lambda ids, _: (ids == 5).float()[:, :3],
    "argmax": lambda _, value: value.argmax(1, keepdim=True) + 1,
    "constants": lambda ids, _: torch.ones_like(ids[:, :3]),  # the control: none of them is an id
}


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("name", ADDED)
def test_what_another_thread_makes_of_ids_has_a_name_where_it_is_added(name: str, by: Callable[..., Any]) -> None:
    found = unrolled.account(Adds(by, ADDED[name]), TOKENS, target=1)
    assert found.closes
    assert list(found.constants) == [name]
    assert any(name in note for note in found.notes) == (name != "constants")


class AtPlaces(Classifier):
    def forward(self, tokens: Tensor) -> Tensor:
        places = self.by(lambda ids: torch.arange(ids.shape[1]).expand_as(ids), tokens)
        return self.read(self.embed(tokens) + self.table[places])


@pytest.mark.parametrize("by", WAYS)
def test_numbers_of_places_that_have_the_form_of_ids_pick_numbers_of_the_model(by: Callable[..., Any]) -> None:
    found, plain = (unrolled.account(AtPlaces(each), TOKENS, target=1) for each in (by, here))
    torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(found.biases["table"], plain.biases["table"], rtol=1e-6, atol=1e-8)


class Scaled(Classifier):
    def __init__(self, by: Callable[..., Any], part: Callable[[Tensor], float], of_value: bool) -> None:
        super().__init__(by)
        self.part, self.of_value = part, of_value

    def forward(self, tokens: Tensor) -> Tensor:
        vectors = self.embed(tokens)
        return self.read(vectors) * self.by(self.part, vectors[0] if self.of_value else self.table)


TAKEN = {
    "item": lambda value: value.mean().item(),
    "tolist": lambda value: value.detach().tolist()[0][1],
    "numpy": lambda value: float(value.detach().numpy()[0, 1]),
}


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("name", TAKEN)
def test_value_that_another_thread_gives_to_python_is_no_number_of_the_model(name: str, by: Callable[..., Any]) -> None:
    assert unrolled.account(Scaled(by, TAKEN[name], of_value=False), TOKENS, target=1).closes  # the control
    with pytest.raises(UnsupportedOperationError, match=rf"numbers out of torch \({name}\) in another thread"):
        unrolled.account(Scaled(by, TAKEN[name], of_value=True), TOKENS, target=1)
