"""A batch of no examples, and texts of no tokens, are refused in one line; steps of no features are accounted for."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError, UnrolledError
from whole_model_zoo import Bag, Classifier, Loop, ids

CALLS = [unrolled.explain_batch, unrolled.account]


def built(name):
    made = {"network": lambda: Classifier(nn.GRU, 1, False, "last"), "loop": Loop, "bag": lambda: Bag("sum")}[name]()
    return made.double().eval()


@pytest.mark.parametrize("target", [None, 1])
@pytest.mark.parametrize("name", ["network", "loop", "bag"])
def test_a_batch_of_no_examples_is_refused_in_one_line(name, target):
    for call in CALLS[name == "bag" :]:
        with pytest.raises(ShapeError, match=r"expected (a batch of )?at least one") as caught:
            call(built(name), ids(3, 5)[:0], target=target)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["network", "loop", "bag"])
def test_check_says_of_every_part_that_there_is_no_example(name):
    found = unrolled.check(built(name), ids(3, 5)[:0])
    assert not any(part.opens for part in found.parts)
    assert all("at least one" in part.why for part in found.parts)
    assert all(part.opens for part in unrolled.check(built(name), ids(3, 5)).parts)


@pytest.mark.parametrize("call", [*CALLS, unrolled.check])
def test_texts_of_no_tokens_are_refused_in_one_line(call):
    with pytest.raises(ShapeError, match=r"the model fails on an input of shape \(3, 0\); expected at least one token"):
        call(built("network"), ids(3, 5)[:, :0])


class Steps(nn.Module):
    """Calls its cell once for each step, so that without steps it returns its bias."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = nn.GRUCell(2, 3), nn.Linear(3, 2)

    def forward(self, x):
        h = x.new_zeros(len(x), 3)
        for each in x.unbind(1):
            h = self.cell(each, h)
        return self.head(h)


@pytest.mark.parametrize("call", [unrolled.explain, *CALLS])
def test_a_loop_over_no_steps_is_refused_by_the_shape_of_its_input(call):
    told = r"^the model reads no token of an input of shape \(1, 0, 2\); expected at least one token$"
    with pytest.raises(ShapeError, match=told):
        call(Steps(), torch.zeros(1, 0, 2), target=1)
    assert all(re.match(told, part.why) for part in unrolled.check(Steps(), torch.zeros(1, 0, 2)).parts)
    call(Steps(), torch.zeros(1, 1, 2), target=1)


@pytest.mark.parametrize("call", CALLS)
def test_a_model_that_reads_nothing_of_an_argument_with_numbers_is_refused_for_another_reason(call):
    class Constant(Steps):
        def forward(self, x):
            return super().forward(x[:, :0])

    with pytest.raises(UnrolledError) as caught:
        call(Constant(), torch.zeros(1, 4, 2), target=1)
    assert "reads no token" not in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("shape", "blamed"), [((1, 4, 0), False), ((1, 0, 2), True)])
def test_steps_without_features_are_not_blamed_for_an_output_that_reads_nothing(call, shape, blamed):
    class Constant(Steps):
        def forward(self, x, extra):
            return super().forward(x[:, :0])

    with pytest.raises(UnrolledError) as caught:
        call(Constant(), torch.zeros(1, 4, 2), torch.zeros(shape), target=1)
    assert ("reads no token" in str(caught.value)) is blamed


def test_an_empty_argument_that_the_model_can_do_without_is_none_of_these():
    class Optional(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3, 2)

        def forward(self, x, more):
            return self.head(x) + more.sum()

    found = unrolled.account(Optional().double(), torch.randn(2, 3).double(), torch.zeros(0).double(), target=1)
    assert found.closes


class WithExtraFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, numbers, extra):
        return self.head(self.rnn(torch.cat((numbers, extra), dim=-1))[0][:, -1])


@pytest.mark.parametrize("batch", [1, 2])
def test_an_argument_of_steps_without_features_is_shown_and_has_no_records(batch):
    model, numbers = WithExtraFeatures(), torch.randn(batch, 5, 3)
    found = unrolled.account(model, numbers, torch.zeros(batch, 5, 0), target=1)
    assert "steps of numbers" in str(found)
    of_features = [record for record in found.to_records() if record["kind"] == "feature"]
    assert len(of_features) == batch * 5 * 3
    assert found.closes
