"""A batch that is a namespace, as loaders of texts give, has the account of its tensors."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, MutableMapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UsageError

PREMISE, HYPOTHESIS = torch.tensor([[3, 4, 5]]), torch.tensor([[4, 2]])


class Pairs(nn.Module):
    """Reads two texts of a batch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 3, batch_first=True), nn.Linear(6, 2)

    def read(self, ids: Tensor) -> Tensor:
        state: Tensor = self.rnn(self.embed(ids))[1][0]
        return state

    def forward(self, batch: Any) -> Tensor:
        batch.premise = batch.premise.clone()  # a model may write into its batch
        logits: Tensor = self.head(torch.cat([self.read(batch.premise), self.read(batch.hypothesis)], 1))
        return logits


class Texts(Pairs):
    """Reads the two texts themselves."""

    def forward(self, premise: Tensor, hypothesis: Tensor) -> Tensor:  # type: ignore[override] # two texts
        return super().forward(SimpleNamespace(premise=premise, hypothesis=hypothesis))


def test_the_tensors_of_a_namespace_are_sources() -> None:
    batch = SimpleNamespace(premise=PREMISE, hypothesis=HYPOTHESIS)
    found = unrolled.account(Pairs(), batch, target=1, tokens=list("abcde"))
    plain = unrolled.account(Texts(), PREMISE, HYPOTHESIS, target=1)
    assert [*found.texts] == ["0.premise", "0.hypothesis"]
    for ours, theirs in zip(found.texts.values(), plain.texts.values(), strict=True):
        assert torch.equal(ours, theirs)
    words = unrolled.explain(Pairs(), batch, target=1, tokens=[list("abc"), list("de")])
    assert words.tokens == tuple("abcde")
    assert batch.premise is PREMISE  # the caller's batch is as it was


def test_an_object_of_another_class_is_not_searched() -> None:
    class Batch:
        premise, hypothesis = PREMISE, HYPOTHESIS

    with pytest.raises(UsageError, match="argument 0 is a Batch, which is not searched for tensors"):
        unrolled.account(Pairs(), Batch(), target=1)


class Kept(MutableMapping[str, Any]):
    """A mapping that keeps its items in a dictionary, which ``copy.copy`` shares."""

    def __init__(self, **items: Any) -> None:
        self._items = items

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._items[key] = value

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


@pytest.mark.parametrize("kind", [Kept, dict, UserDict])
@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain])
def test_a_mapping_of_the_caller_holds_its_own_tensors_afterwards(call: Any, kind: Any) -> None:
    class OfMapping(Pairs):
        def forward(self, batch: Any) -> Tensor:
            return super().forward(SimpleNamespace(**batch))

    batch = kind(premise=PREMISE, hypothesis=HYPOTHESIS)
    found = call(OfMapping(), batch, target=1)
    assert abs(float(found.ledger.remainder if call is unrolled.explain else found.remainder)) < 1e-5
    assert batch["premise"] is PREMISE
    assert batch["hypothesis"] is HYPOTHESIS
