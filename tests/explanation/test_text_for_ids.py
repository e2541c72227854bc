"""Text that is given to a model of ids is refused by what came and what the model expects."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError, UsageError


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, ids, pooling="last"):
        states = self.rnn(self.embed(ids))[0]
        if pooling == "fails":
            raise ValueError("no such pooling")
        if pooling == "strides":
            raise ValueError("the stride of the distribution must be positive")
        return self.head(states.mean(1) if pooling == "mean" else states[:, -1])


CALLS = {
    "account": lambda *args: unrolled.account(Classifier(), *args, target=0),
    "explain": lambda *args: unrolled.explain(Classifier(), *args, target=0),
    "explain_batch": lambda *args: unrolled.explain_batch(Classifier(), *args, target=0),
    "check": lambda *args: unrolled.check(Classifier(), *args),
}
TEXTS = [
    "not good",
    ["not", "good"],
    [["not", "good"]],
    ("not", "good"),
    np.array([["not", "good"]]),
    np.str_("not good"),
]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: type(text).__name__)
def test_text_in_the_place_of_ids_is_named(name, text):
    with pytest.raises(
        UsageError, match=r"fails on the text 'not.*; pass the ids .*vocabulary\[word\] for word in words"
    ):
        CALLS[name](text)
    CALLS[name](torch.tensor([[1, 2]]))  # the control
    with pytest.raises(UsageError, match=r"fails on an argument that is a list: .*dtype=torch.int64 of ids"):
        CALLS[name]([[1, 2]])


@pytest.mark.parametrize("name", CALLS)
def test_ids_without_the_axis_of_a_batch_are_named(name):
    with pytest.raises(
        ShapeError, match=r"fails on ids of shape \(2,\): .*; if it expects a batch, pass .* ids\[None\]"
    ):
        CALLS[name](torch.tensor([1, 2]))
    with pytest.raises(UsageError, match=r"ids of torch.float32; .*: pass ids.long") as caught:  # control: their type
        CALLS[name](torch.tensor([1.0, 2.0]))
    assert "ids[None]" not in str(caught.value)


def test_text_that_chooses_is_not_blamed():
    ids = torch.tensor([[1, 2]])
    assert len(unrolled.account(Classifier(), ids, "mean", target=0)) == 1
    for pooling, message in (("fails", "no such pooling"), ("strides", "the stride of the distribution must be")):
        with pytest.raises(ValueError, match=message) as caught:
            unrolled.account(Classifier(), ids, pooling, target=0)
        assert not isinstance(caught.value, UsageError)
