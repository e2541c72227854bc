"""Explanations that are pickled or copied: each stores its own numbers, not those of its batch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled

X = torch.randn(32, 7, 3, generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True, **options)
        self.head = nn.Linear(8 if self.rnn.bidirectional else 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.rnn(x)[0].mean(1))
        return logits


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"bidirectional": True, "num_layers": 2}])
@pytest.mark.parametrize("max_order", [None, 2])
def test_an_example_of_a_large_batch_is_stored_as_large_as_one_of_a_small_batch(
    options: dict[str, Any], max_order: int | None
) -> None:
    torch.manual_seed(0)
    model = Reader(**options)
    large, small = (unrolled.explain_batch(model, x, target=1, max_order=max_order) for x in (X, X[:1]))
    assert len(pickle.dumps(large[0])) < 1.2 * len(pickle.dumps(small[0]))
    row = torch.zeros(32, 1000)[0]  # control: a part of a batch that is pickled as it is brings all of it
    assert len(pickle.dumps(row)) > 32 * row.nbytes


def test_a_stored_explanation_says_the_same() -> None:
    torch.manual_seed(0)
    found = unrolled.explain_batch(Reader(bidirectional=True), X[:3], target=1, max_order=3)
    for stored in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        for one, other in zip(found, stored, strict=True):
            assert other.to_records() == one.to_records()
            assert other.ledger == one.ledger
            assert other.token_scores.equal(one.token_scores)
            assert other.feature_scores.equal(one.feature_scores)
            assert str(other) == str(one)


def test_an_account_of_one_example_is_stored_without_those_of_its_batch() -> None:
    torch.manual_seed(0)
    large, small = (unrolled.account(Reader(), x, target=1) for x in (X, X[:1]))
    assert len(pickle.dumps(large[0])) < 1.2 * len(pickle.dumps(small[0]))
    stored = pickle.loads(pickle.dumps(large[2]))
    assert str(stored) == str(large[2])
    assert stored.features["0"].equal(large[2].features["0"])
