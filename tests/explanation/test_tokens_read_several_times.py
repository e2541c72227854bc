"""A position that reads one token alone has its name, however often the model reads that token."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.explanation.tokens import vectors_read

IDS = torch.tensor([[1, 2, 3], [3, 3, 4]])


class Step(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(4, 5), nn.Linear(5, 5)

    def forward(self, x, h):
        return torch.tanh(self.x(x) + self.h(h))


class Micro(nn.Module):
    """Calls its cell several times for each token."""

    def __init__(self, cell: nn.Module, times: int, mixes: bool = False) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(9, 4), cell, nn.Linear(5, 2)
        self.times, self.mixes = times, mixes

    def forward(self, ids):
        vectors, h = self.embed(ids), torch.zeros(len(ids), 5)
        if self.mixes:
            vectors = vectors + vectors.roll(1, 1)
        for x in vectors.unbind(1):
            for _ in range(self.times):
                h = self.cell(x, h)
        return self.head(h)


class Whole(nn.Module):
    """Gives its network each token twice in a row, or the whole text twice."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.again = again

    def forward(self, ids):
        vectors = self.embed(ids)
        vectors = vectors.repeat(1, 2, 1) if self.again else vectors.repeat_interleave(2, 1)
        return self.head(self.rnn(vectors)[0][:, -1])


MODELS = {
    "cell": (lambda: Micro(nn.GRUCell(4, 5), 2), "112233 333344"),
    "own step": (lambda: Micro(Step(), 2), "112233 333344"),
    "three times": (lambda: Micro(Step(), 3), "111222333 333333444"),
    "network": (lambda: Whole(again=False), "112233 333344"),
    "the text again": (lambda: Whole(again=True), "123123 334334"),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_reading_of_a_token_has_its_name(name):
    build, named = MODELS[name]
    found = unrolled.explain_batch(build(), IDS, target=0)
    assert ["".join(each.tokens) for each in found] == named.split()
    letters = str.maketrans("1234", "abcd")
    words = [["a", "b", "c"], ["c", "c", "d"]]
    found = unrolled.explain_batch(build(), IDS, target=0, tokens=words)
    assert ["".join(each.tokens) for each in found] == named.translate(letters).split()
    every = [list(each.upper()) for each in named.split()]  # a word for each reading
    assert [list(each.tokens) for each in unrolled.explain_batch(build(), IDS, target=0, tokens=every)] == every


def test_positions_that_read_two_tokens_have_no_name():
    found = unrolled.explain_batch(Micro(nn.GRUCell(4, 5), 2, mixes=True), IDS, target=0)
    assert [each.tokens for each in found] == [tuple(f"x{t}" for t in range(6))] * 2


def test_a_vector_that_every_step_reads_takes_no_gradient_for_each_step(monkeypatch):
    passes, where_read = [], vectors_read.where_read
    monkeypatch.setattr(vectors_read, "where_read", lambda *given: passes.append(1) or where_read(*given))
    for ids, tokens in ((torch.tensor([[1]]), ("x0", "x1", "x2", "x3", "x4", "x5")), (IDS[:1, :2], tuple("111222"))):
        passes.clear()
        found = unrolled.explain(Micro(nn.GRUCell(4, 5), 6 // ids.shape[1]), ids, target=0)
        assert found.tokens == tokens
        assert len(passes) == 3 * (ids.shape[1] - 1)  # the control: two tokens are read in three rounds


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_position_that_reads_a_little_of_another_vector_is_told_in_any_precision(kind):
    torch.manual_seed(0)
    vectors = torch.randn(30, 1, 1).to(kind).requires_grad_()
    little = torch.zeros(30, 1, 1, dtype=kind)
    little[27] = 0.02
    read = vectors + little * vectors.roll(-1, 0)
    (found,) = vectors_read.where_read([vectors], read, torch.ones(30, 1) > 0).values()
    assert found is None


def test_a_gradient_that_overflows_tells_no_position():
    torch.manual_seed(0)
    vectors = torch.randn(8, 1, 1).half().requires_grad_()
    read = vectors * 30000 - vectors * 29000  # by the weight of the last position both are infinite
    (found,) = vectors_read.where_read([vectors], read, torch.ones(8, 1) > 0).values()
    assert found is None
