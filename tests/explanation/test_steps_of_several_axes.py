"""A position bears the name of the step that it reads, where a step is an image or a bag of ids: change it and see."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import ShapeError

T = 4
NAMES = list("abcd")
IMAGES = torch.randn(2, T, 1, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
BAGS = torch.randperm(24, generator=torch.Generator().manual_seed(0)).view(2, T, 3)


class Frames(nn.Module):
    """Reads images, or bags of ids, in an order of its own, at once or step by step."""

    def __init__(self, order: list[int], in_a_loop: bool = False, mixed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.embed = nn.Conv2d(1, 2, 2), nn.Embedding(25, 8)
        self.rnn = nn.GRUCell(8, 5) if in_a_loop else nn.GRU(8, 5, batch_first=True)
        self.head = nn.Linear(5, 2)
        self.order, self.in_a_loop, self.mixed = order, in_a_loop, mixed
        self.double()

    def read(self, given: Tensor) -> Tensor:
        if given.is_floating_point():
            vectors = self.conv(given.flatten(0, 1)).view(*given.shape[:2], -1)
        else:
            vectors = self.embed(given).sum(2)
        return vectors.cumsum(1) if self.mixed else vectors[:, self.order]

    def forward(self, given: Tensor) -> Tensor:
        read = self.read(given)
        if not self.in_a_loop:
            return self.head(self.rnn(read)[0].mean(1))
        h = read.new_zeros(len(read), 5)
        for x in read.unbind(1):
            h = self.rnn(x, h)
        return self.head(h)


ORDERS = {"all": [0, 1, 2, 3], "reversed": [3, 2, 1, 0], "the last two": [2, 3], "every second": [0, 2], "odd": [3, 1]}
GIVEN = {"images": IMAGES, "bags": BAGS}


def steps_that_are_read(model: Frames, given: Tensor) -> list[int]:
    """Change one step after another, and see which position reads it."""
    before, found = model.read(given), {}
    for step in range(T):
        other = given.clone()
        other[:, step] += 1
        changed = (model.read(other) != before).any(dim=2).any(dim=0)
        found.update(dict.fromkeys(changed.nonzero()[:, 0].tolist(), step))
    return [found[position] for position in range(before.shape[1])]


@pytest.mark.quick_diagonal(3)  # quick: every order
@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_words_of_all_steps_stand_at_the_positions_that_read_them(order, given, in_a_loop):
    model = Frames(order, in_a_loop)
    steps = steps_that_are_read(model, given)
    for found in unrolled.explain_batch(model, given, target=1, tokens=[NAMES] * 2):
        assert found.tokens == tuple(NAMES[step] for step in steps)
    if given.is_floating_point():
        for found in unrolled.explain_batch(model, given, target=1):
            assert found.tokens == tuple(f"x{step}" for step in steps)


def test_a_sequence_that_begins_in_the_middle_has_the_names_of_its_steps():
    class Episodes(Frames):
        def forward(self, given: Tensor, ended: Tensor) -> Tensor:
            h = given.new_zeros(len(given), 5)
            for x, over in zip(self.read(given).unbind(1), ended.unbind(1), strict=True):
                h = self.rnn(x, h * (1 - over)[:, None])
            return self.head(h)

    ended = torch.zeros(2, T, dtype=torch.float64)
    ended[0, 2] = 1
    found = unrolled.explain_batch(Episodes(ORDERS["all"], in_a_loop=True), IMAGES, ended, target=1)
    assert [each.tokens for each in found] == [("x2", "x3"), ("x0", "x1", "x2", "x3")]
    found = unrolled.explain_batch(Episodes(ORDERS["all"], in_a_loop=True), IMAGES, ended, target=1, tokens=[NAMES] * 2)
    assert [each.tokens for each in found] == [("c", "d"), ("a", "b", "c", "d")]


def words_of(model: Frames, given: Tensor, words: list[str]) -> Callable[[], unrolled.Explanation]:
    return lambda: unrolled.explain(model, given[:1], target=1, tokens=words)


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_words_are_not_given_to_positions_whose_steps_are_not_known(given):
    with pytest.raises(ShapeError, match="3 tokens for a sequence of 4"):
        words_of(Frames(ORDERS["reversed"]), given, NAMES[:3])()
    few = words_of(Frames(ORDERS["odd"]), given, NAMES[:2])()  # which two of the steps, in which order?
    assert set(few.tokens).isdisjoint(NAMES)
    assert any("the tokens that were given are not shown" in note for note in few.notes)
    forward = words_of(Frames(ORDERS["every second"]), given, NAMES[:2])()  # the control: in the order of the steps
    assert forward.tokens == ("a", "b")
    mixed = words_of(Frames(ORDERS["all"], mixed=True), given, NAMES)()
    assert mixed.tokens == tuple(NAMES)


class Calendar(nn.Module):
    """Reads the columns of an argument by a table each: the word and its tag, or the hour and the weekday."""

    def __init__(self, order: list[int], last: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tables = nn.ModuleList(nn.Embedding(25, 8) for _ in range(3))
        self.rnn, self.head = nn.GRU(8, 5, batch_first=True), nn.Linear(5, 2)
        self.order, self.last = order, last
        self.double()

    def forward(self, ids: Tensor, numbers: Tensor | None = None) -> Tensor:
        read = sum(table(ids[:, :, k]) for k, table in enumerate(self.tables))
        if self.last:  # each position reads the one before it, too
            read = read + self.tables[0](ids[:, :, 1].roll(1, 1))
        if numbers is not None:
            read = read + numbers
        return self.head(self.rnn(read[:, self.order])[0].mean(1))


@pytest.mark.quick_diagonal(2)  # quick: every order, both numbers
@pytest.mark.parametrize("numbers", [None, torch.ones(2, T, 8, dtype=torch.float64)], ids=["ids", "numbers beside"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_columns_of_a_step_name_its_position_together(order, numbers):
    given = (BAGS,) if numbers is None else (BAGS, numbers)
    for example, found in enumerate(unrolled.explain_batch(Calendar(order), *given, target=1)):
        assert found.tokens == tuple(" ".join(map(str, BAGS[example, step].tolist())) for step in order)
        assert not any("which token" in note for note in found.notes)
    for found in unrolled.explain_batch(Calendar(order), *given, target=1, tokens=[NAMES] * 2):
        assert found.tokens == tuple(NAMES[step] for step in order)


def test_a_position_that_reads_a_column_of_another_step_too_is_not_named_by_both():
    mixed = unrolled.explain_batch(Calendar(ORDERS["all"], last=True), BAGS, target=1)[0]
    assert any("which token" in note for note in mixed.notes)
    assert mixed.tokens == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_columns_that_lie_one_after_the_other_are_in_the_order_of_their_steps(order):
    """The words of all steps, then their tags: words for the positions alone are shown if their order is known."""

    class Halves(Calendar):
        def forward(self, ids: Tensor) -> Tensor:
            read = self.tables[0](ids[:, :T]) + self.tables[1](ids[:, T:])
            return self.head(self.rnn(read[:, self.order])[0].mean(1))

    both = BAGS[:, :, :2].mT.flatten(1)
    plain, some, every = (
        unrolled.explain_batch(Halves(order), both, target=1, tokens=tokens and [tokens] * 2)[0]
        for tokens in (None, NAMES[: len(order)], list("abcdefgh"))
    )
    assert plain.tokens == tuple(f"{both[0, step]} {both[0, T + step]}" for step in order)
    assert every.tokens == tuple(f"{'abcd'[step]} {'efgh'[step]}" for step in order)
    assert some.tokens == (tuple(NAMES[: len(order)]) if order == sorted(order) else plain.tokens)
