"""A probability that a product with one-hot numbers and a sum pick is told as one that an index picks."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import one_hot

import unrolled

IDS = torch.tensor([[1, 2, 3, 4], [5, 3, 1, 1]], device="cpu")
LABELS = torch.tensor([1, 2], device="cpu")
HOT = one_hot(LABELS, 3)
CALLS = [unrolled.explain_batch, unrolled.account]


class Model(nn.Module):
    """A classifier whose output ``end`` makes of its logits."""

    def __init__(self, end=lambda logits: logits, cell=False):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(7, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.cell, self.end = nn.GRUCell(4, 5) if cell else None, end
        self.double()

    def forward(self, ids):
        vectors, state = self.embed(ids), None
        if self.cell is None:
            return self.end(self.head(self.rnn(vectors)[0][:, -1]))
        for each in vectors.unbind(1):
            state = self.cell(each, state)
        return self.end(self.head(state))


def notes_of(found):
    return [note for each in ([found] if hasattr(found, "notes") else found) for note in each.notes]


def says_sigmoid(found):
    return any(note.startswith("the target is the result of a sigmoid, not a logit") for note in notes_of(found))


def at_largest(p):
    return one_hot(p.argmax(-1), 3)


PICKED = {
    "product and sum": lambda z: (torch.sigmoid(z) * HOT).sum(-1),
    "product of floats": lambda z: (torch.sigmoid(z) * HOT.double()).sum(1),
    "product of matrices": lambda z: (torch.sigmoid(z)[:, None] @ HOT.double()[..., None])[:, 0, 0],
    "einsum": lambda z: torch.einsum("bc,bc->b", torch.sigmoid(z), HOT.double()),
    "in single precision": lambda z: ((1 - torch.sigmoid(z.float())) * HOT.double()).sum(-1),
    "the other class": lambda z: ((1 - torch.sigmoid(z)) * HOT).sum(-1),
    "mask and sum": lambda z: torch.sigmoid(z).masked_fill(HOT == 0, 0.0).sum(-1),
    "the likeliest": lambda z: (torch.sigmoid(z) * at_largest(z)).sum(-1),
}
OTHERS = {
    "sum": lambda z: torch.sigmoid(z).sum(-1),
    "mean": lambda z: (torch.sigmoid(z) * HOT).mean(-1),
    "twice": lambda z: 2 * (torch.sigmoid(z) * HOT).sum(-1),
    "difference": lambda z: (torch.sigmoid(z) * (HOT - HOT.roll(1, 1))).sum(-1),
    "beside a logit": lambda z: (torch.sigmoid(z) * HOT).sum(-1) + z[:, 0],
    "gate": lambda z: (torch.sigmoid(z) * z * HOT).sum(-1),
    "tanh": lambda z: (torch.tanh(z) * HOT).sum(-1),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("cell", [False, True])
@pytest.mark.parametrize("name", PICKED)
def test_a_picked_probability_is_told_as_one(call, cell, name):
    assert says_sigmoid(call(Model(cell=cell), IDS, target=PICKED[name]))
    assert says_sigmoid(call(Model(PICKED[name], cell), IDS, target=lambda out: out))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", OTHERS)
def test_a_number_that_is_made_of_probabilities_is_none(call, name):
    assert not says_sigmoid(call(Model(), IDS, target=OTHERS[name]))


def test_a_picked_probability_has_the_name_and_the_parts_of_an_indexed_one():
    picked = unrolled.explain_batch(Model(), IDS, target=PICKED["product and sum"])
    indexed = unrolled.explain_batch(Model(), IDS, target=lambda z: torch.sigmoid(z)[torch.arange(2), LABELS])
    for one, other in zip(picked, indexed, strict=True):
        assert one.unit == other.unit == "probability"
        torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions)
        assert one.biases == pytest.approx(other.biases)
    sums = unrolled.explain_batch(Model(), IDS, target=OTHERS["sum"])
    assert {each.unit for each in sums} == {"output"}


LIKELIEST = {
    "one-hot": at_largest,
    "a row of the identity": lambda p: torch.eye(3, dtype=p.dtype)[p.argmax(-1)],
    "scattered": lambda p: torch.zeros_like(p).scatter(1, p.argmax(-1, keepdim=True), 1.0),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("cell", [False, True])
@pytest.mark.parametrize("name", LIKELIEST)
@pytest.mark.parametrize("function", [torch.sigmoid, lambda z: z.softmax(-1)])
def test_one_hot_numbers_at_the_arg_max_are_a_choice_as_its_index_is(call, cell, name, function):
    def product(z):
        return (function(z) * LIKELIEST[name](function(z))).sum(-1)

    def index(z):
        return function(z).gather(1, z.argmax(-1, keepdim=True))[:, 0]

    found, expected = (call(Model(cell=cell), IDS, target=each) for each in (product, index))
    assert not any(note.endswith(": argmax") for note in notes_of(found))
    for one, other in zip(found, expected, strict=True):
        if call is unrolled.account:
            torch.testing.assert_close(one.texts, other.texts)
            torch.testing.assert_close(one.biases, other.biases)
        else:
            torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions)
            assert one.biases == pytest.approx(other.biases)


@pytest.mark.parametrize("call", CALLS)
def test_what_is_held_beside_a_probability_keeps_its_name(call):
    weighed = call(Model(), IDS, target=lambda z: (torch.sigmoid(z) * at_largest(z)) @ torch.arange(3.0).double())
    shifted = call(Model(), IDS, target=lambda z: torch.sigmoid(z + 0.5 * torch.sign(z))[:, 1])
    for found, name in ((weighed, "argmax"), (shifted, "sign")):
        assert any(note.endswith(f": {name}") for note in notes_of(found))
