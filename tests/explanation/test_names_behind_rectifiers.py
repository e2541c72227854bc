"""A step whose rectified units are all off reads its token: it has the name that it has in front of a leaky unit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

OFF, ON = -1.0, 1.0
"""Vectors of which rectified units are off, or on."""
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri"]
STEPS = (OFF, ON, ON, OFF, ON)


class Model(nn.Module):
    """A GRU behind ``front``; the numbers of a step, or the vector of a word, are all of one sign."""

    def __init__(self, front):
        super().__init__()
        torch.manual_seed(0)
        self.front = front
        self.embed = nn.Embedding(6, 2)
        with torch.no_grad():
            self.embed.weight.copy_(torch.tensor([OFF, *STEPS])[:, None] * torch.rand(6, 2).add(0.5))
        self.rnn, self.head = nn.GRU(2, 3, batch_first=True), nn.Linear(3, 2)
        self.double()

    def forward(self, x):
        vectors = x if x.is_floating_point() else self.embed(x)
        return self.head(self.rnn(self.front(vectors))[0][:, -1])


def _masked(x):
    return x.masked_fill_(x < 0, 0.0)


def _written(x):
    x[x < 0] = 0.0
    return x


RECTIFIERS = {
    "relu": torch.relu,
    "in place": lambda x: torch.relu_(x.clone()),
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(min=0),
    "hardswish": lambda x: F.hardswish(3.5 * x - 1),
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "minimum": lambda x: -torch.minimum(-x, torch.zeros_like(x)),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "fmin": lambda x: -torch.fmin(-x, torch.zeros_like(x)),
    "clamp by a tensor": lambda x: x.clamp(min=x.new_zeros(2)),
    "clamp_min by a tensor": lambda x: x.clamp_min(x.new_zeros(2)),
    "clamp_max by a tensor": lambda x: -(-x).clamp_max(x.new_zeros(2)),
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "where of zeros": lambda x: torch.where(x <= 0, torch.zeros_like(x), x),
    "masked": lambda x: x.masked_fill(x < 0, 0.0),
    "masked by the opposite": lambda x: x.masked_fill(~(x > 0), 0.0),
    "masked in place": lambda x: _masked(x.clone()),
    "written": lambda x: _written(x.clone()),
    "times its mask": lambda x: x * (x > 0),
    "times its mask in numbers": lambda x: x * (x > 0).to(x.dtype),
    "times one times its mask": lambda x: x * ((x > 0) * 1.0),
    "view in place": lambda x: torch.relu_(x.clone().view(-1, 2).view(x.shape)),
    "layer in place": lambda x: torch.relu_(F.linear(x, x.new_tensor([[1.0, 2.0], [3.0, 1.0]]), x.new_zeros(2))),
    "masked view in place": lambda x: _masked(x.clone().view(-1, 2)).view(x.shape),
    "between layers": lambda x: torch.relu(x @ x.new_tensor([[1.0, 2.0], [3.0, 1.0]])) * 2 - 1,
}
NUMBERS = torch.tensor(STEPS, dtype=torch.float64)[None, :, None].repeat(1, 1, 2)
IDS = torch.tensor([[1, 2, 3, 4, 5]])


@pytest.mark.parametrize("rectifier", RECTIFIERS)
@pytest.mark.parametrize("given", [NUMBERS, IDS], ids=["numbers", "ids"])
def test_a_step_whose_units_are_all_off_has_its_name(given, rectifier):
    model = Model(RECTIFIERS[rectifier])
    of_leaky = unrolled.explain(Model(F.leaky_relu), given, target=1)
    found = unrolled.explain(model, given, target=1)
    assert found.tokens == of_leaky.tokens == (("x0", "x1", "x2", "x3", "x4") if given is NUMBERS else tuple("12345"))
    assert unrolled.explain(model, given, target=1, tokens=DAYS).tokens == tuple(DAYS)


def test_each_example_of_a_batch_has_its_own_names():
    model, other = Model(torch.relu), NUMBERS.flip(1)
    found = unrolled.explain_batch(model, torch.cat((NUMBERS, other)), target=1, tokens=[DAYS, DAYS[::-1]])
    assert [each.tokens for each in found] == [tuple(DAYS), tuple(DAYS[::-1])]


def _over_first(x):
    x[:, 0].copy_(x.new_zeros(2))
    return x


def _masked_by_both(x):
    y = x + 2
    return y * ((y > 0).to(x.dtype) * x.new_tensor([0, 1, 1, 1, 1])[:, None])


OTHERS = {
    "what a mask beside its answers leaves out": _masked_by_both,
    "a start of the model's own": lambda x: torch.relu(F.pad(x[:, 1:], (0, 0, 1, 0), value=0.5)),
    "what a choice leaves out": lambda x: torch.where(x.new_tensor([0, 1, 1, 1, 1])[:, None] > 0, x + 2, 0.0),
    "what a fill leaves out": lambda x: (x + 2).masked_fill(x.new_tensor([1, 0, 0, 0, 0])[:, None] > 0, 0.0),
    "what is written over": lambda x: _over_first((x + 2).view(-1, 5, 2)),
    "what a mask leaves out": lambda x: torch.relu(x + 2) * x.new_tensor([0, 1, 1, 1, 1])[:, None],
}


@pytest.mark.parametrize("front", OTHERS)
def test_a_step_that_reads_no_token_has_none(front):
    found = unrolled.explain(Model(OTHERS[front]), IDS, target=1)
    assert found.tokens == ("‹no token›", "2", "3", "4", "5")


def test_a_word_that_another_one_exceeds_is_not_read():
    def larger(x):
        return torch.maximum(x[:, 1:] + 2, F.pad(x[:, :1] + 9, (0, 0, 0, 3), value=-9.0))

    assert unrolled.explain(Model(larger), IDS, target=1).tokens == ("1", "3", "4", "5")


class ReadsTwice(Model):
    """Reads the vectors of the words before, by a second look-up, behind units that ``shift`` opens or not."""

    def __init__(self, shift):
        super().__init__(torch.relu)
        self.shift = shift

    def forward(self, ids):
        before = torch.relu(self.embed(ids).roll(1, 1) + self.shift)
        return self.head(self.rnn(self.embed(ids) + before)[0][:, -1])


def test_a_second_look_up_of_which_nothing_is_read_names_no_step():
    assert unrolled.explain(ReadsTwice(-100.0), IDS, target=1).tokens == tuple("12345")
    both_read = unrolled.explain(ReadsTwice(100.0), IDS, target=1)
    assert both_read.tokens == ("x0", "x1", "x2", "x3", "x4")
