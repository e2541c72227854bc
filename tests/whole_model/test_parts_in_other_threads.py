"""An account refuses a model in which another thread computes a part: the part depends on the tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing.pool import ThreadPool
from queue import Queue

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
        (True, False, "computes tanh in another thread"),
        (True, True, "computes tanh in another thread"),
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


POOL = ThreadPoolExecutor(1)
POOL.submit(str).result()  # its thread is there before any run


def of_pool(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    return POOL.submit(part, value).result()


def mapped(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    with ThreadPool(1) as pool:
        return pool.map(part, [value])[0]


def started(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    found: list[Tensor] = []
    thread = threading.Thread(target=lambda: found.append(part(value)))
    thread.start()
    thread.join()
    return found[0]


def nested(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    return started(lambda given: started(part, given), value)


def after(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    found: Queue[Tensor] = Queue()
    may_end = threading.Event()
    future = POOL.submit(lambda: may_end.wait() and value)
    future.add_done_callback(lambda done: found.put(part(done.result())))
    may_end.set()  # not before the pool's thread is to call back
    return found.get(timeout=60)


def called_back(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    found: Queue[Tensor] = Queue()
    with ThreadPool(1) as pool:
        pool.apply_async(lambda: value, callback=lambda done: found.put(part(done)))
        return found.get(timeout=60)


class WithPart(nn.Module):
    """Reads the sum of a token's vector and what a part makes of its id, which another thread may compute."""

    def __init__(self, part: Callable[[WithPart, Tensor], Tensor], by: Callable[..., Tensor], of_ids: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.table = nn.Embedding(10, 4), nn.Parameter(torch.randn(10, 4))
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.part, self.by, self.of_ids = part, by, of_ids

    def forward(self, tokens: Tensor) -> Tensor:
        vectors = self.one(tokens)
        if self.of_ids:
            vectors = vectors + self.by(lambda ids: self.part(self, ids), tokens)
        states = self.rnn(vectors)[0][:, -1]
        output: Tensor = self.head(states if self.of_ids else self.by(lambda value: self.part(self, value), states))
        return output


@torch.no_grad()
def without_graph(function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    return function(value)


def written(model: WithPart, ids: Tensor) -> Tensor:
    found = torch.zeros(*ids.shape, 4)
    found[0] = model.table.detach()[ids[0]]
    return found


PARTS = {
    "getitem": lambda model, ids: model.table[ids],
    "embedding": lambda model, ids: F.embedding(ids, model.table),
    "setitem": written,
    "matmul": lambda model, ids: F.one_hot(ids, 10).float() @ model.table,
    "mul": lambda model, ids: model.table.detach()[ids + 1] * 2,
}
OF_VALUE = {
    "tanh": lambda _, value: without_graph(torch.tanh, value),
    "relu": lambda _, value: value.detach().relu(),
}
WAYS = [of_pool, elsewhere, mapped, started, nested, after, called_back]


@pytest.mark.quick_diagonal(4)  # quick: every part, every kind of thread
@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("name", [*PARTS, *OF_VALUE])
def test_a_part_in_another_thread_is_refused_by_the_name_of_its_operation(name: str, by: Callable[..., Tensor]) -> None:
    part = {**PARTS, **OF_VALUE}[name]
    assert unrolled.account(WithPart(part, here, name in PARTS), TOKENS, target=1).closes  # the control
    with pytest.raises(UnsupportedOperationError, match=f"computes {name} in another thread"):
        unrolled.account(WithPart(part, by, name in PARTS), TOKENS, target=1)


@pytest.mark.parametrize("by", WAYS)
def test_ids_that_another_thread_computes_pick_no_numbers_of_the_model(by: Callable[..., Tensor]) -> None:
    class Picks(WithPart):
        def forward(self, tokens: Tensor) -> Tensor:
            ids = self.by(lambda given: given + 1, tokens)
            output: Tensor = self.head(self.rnn(self.one(tokens) + self.table[ids])[0][:, -1])
            return output

    assert unrolled.account(Picks(lambda *_: TOKENS, here, True), TOKENS, target=1).closes
    with pytest.raises(UnsupportedOperationError, match="computes getitem of what it made of tokens in another thread"):
        unrolled.account(Picks(lambda *_: TOKENS, by, True), TOKENS, target=1)


UNCHANGED = {
    "numbers of the model": (lambda model, _: model.table[torch.arange(4)] * 2, True),
    "numbers": (lambda *_: torch.arange(16.0).reshape(4, 4), True),
    "value by an operation that is linear": (lambda _, value: value * 2, False),
    "value over a length": (lambda _, value: value / torch.full((1, 1), 4), False),
}


@pytest.mark.quick_diagonal(3)  # quick: every part and thread
@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("name", UNCHANGED)
def test_what_another_thread_makes_of_no_token_or_linearly_is_as_in_this_one(
    name: str, by: Callable[..., Tensor]
) -> None:
    part, of_ids = UNCHANGED[name]
    found, plain = (unrolled.account(WithPart(part, each, of_ids), TOKENS, target=1) for each in (by, here))
    assert found.closes
    torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("by", WAYS)
def test_lengths_that_another_thread_counts_are_factors(by: Callable[..., Tensor]) -> None:
    class Mean(WithPart):
        def forward(self, tokens: Tensor) -> Tensor:
            lengths = self.by(lambda ids: (ids != 0).sum(1), tokens)
            states = self.rnn(self.one(tokens))[0].sum(1) / lengths[:, None]
            output: Tensor = self.head(states)
            return output

    found, plain = (unrolled.account(Mean(lambda *_: TOKENS, each, True), TOKENS, target=1) for each in (by, here))
    torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=1e-6, atol=1e-8)
    assert found.closes


def test_what_is_called_back_in_this_thread_is_followed_here() -> None:
    def at_once(part: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
        found: list[Tensor] = []
        future = POOL.submit(lambda: value)
        future.result()  # it is done, so that this thread calls back
        future.add_done_callback(lambda done: found.append(part(done.result())))
        return found[0]

    for name, part in PARTS.items():
        found, plain = (unrolled.account(WithPart(part, by, True), TOKENS, target=1) for by in (at_once, here))
        assert found.closes, name
        torch.testing.assert_close(found.texts["0"], plain.texts["0"], rtol=0, atol=0)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, None])
def test_threads_and_pools_are_left_as_they_were(error: type[BaseException] | None) -> None:
    def methods() -> list[object]:
        return [
            ThreadPoolExecutor.submit,
            Future.add_done_callback,
            *(
                vars(each).get(name)
                for each in (ThreadPool, threading.Thread)
                for name in ("start", "map", "imap", "apply_async")
            ),
        ]

    seen: list[bool] = []

    def part(*_: object) -> Tensor:
        seen.append(methods() == before)
        if error is not None:
            raise error("of the model")
        return torch.zeros(1, 4, 4)

    before = methods()
    with nullcontext() if error is None else pytest.raises(error, match="of the model"):
        unrolled.account(WithPart(part, of_pool, True), TOKENS, target=1)
    assert methods() == before
    assert seen
    assert not any(seen)  # the control: meanwhile others stand there
    assert POOL.submit(lambda: len(torch.overrides._get_current_function_mode_stack())).result() == 0
