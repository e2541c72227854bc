"""Of several sequences, one that is read in one direction only has no score in the other: 0 would be a number."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError


class TwoTexts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.both = nn.Embedding(9, 4), nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.one_way = nn.GRU(4, 3, batch_first=True)

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        read = self.both(self.embed(one))[0].mean(dim=1), self.one_way(self.embed(other))[0].mean(dim=1)
        return torch.cat(read, dim=1).sum(dim=1, keepdim=True)


@pytest.mark.parametrize("name", ["score", "contribution", "phrase_score"])
def test_there_is_nothing_in_a_direction_that_a_sequence_does_not_have(name: str) -> None:
    torch.manual_seed(0)
    found = unrolled.explain(TwoTexts().double(), torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]]), target=0)
    number = getattr(found, name)
    with pytest.raises(UsageError, match="the sequence 'one_way' is read forward only; there is nothing backward"):
        number(3, 5, direction="backward")
    # the controls: the direction that it has, the sequence that has both, and the sum over those that there are
    alone = getattr(found.sequence("one_way"), name)(0, 2)
    assert number(3, 5, direction="forward") == number(3, 5) == alone != 0
    assert number(0, 2, direction="backward") != 0
    assert number(0, 2) == pytest.approx(number(0, 2, direction="forward") + number(0, 2, direction="backward"))
    with pytest.raises(UsageError, match="unknown direction 'up'"):
        number(3, 5, direction="up")
