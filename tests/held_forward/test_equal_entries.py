"""Equal entries of a maximum have equal parts, in the precision of the model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled


class Pooled(nn.Module):
    """Pools by the largest number of each feature; a token that stands there again is as large."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 16), nn.Linear(16, 2)

    def forward(self, ids):
        return self.head(self.embed(ids).amax(1))


@pytest.mark.parametrize("times", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tokens_that_are_equally_large_share_alike(dtype, times):
    torch.manual_seed(0)
    model = Pooled().to(dtype)
    found = unrolled.account(model, torch.tensor([[4] * times + [2]]), target=0)
    alone = unrolled.account(model, torch.tensor([[4, 2]]), target=0)
    eps = torch.finfo(dtype).eps
    assert (found.tokens[0, :times].sum() - alone.tokens[0, 0]).abs() <= 16 * eps
    assert (found.tokens[0, :times] - found.tokens[0, 0]).abs().max() <= 4 * eps
    assert (found.tokens[0, -1] - alone.tokens[0, 1]).abs() <= 16 * eps  # the control: the other token keeps its own


def test_a_message_of_a_coarse_type_keeps_it():
    torch.manual_seed(0)
    found = unrolled.account(Messages(), torch.tensor([[4, 4, 4, 2]]), target=0)
    assert found.coarsest == torch.bfloat16  # and no product of two types was met


class Messages(Pooled):
    """Pools in a coarse type, and adds in it."""

    def forward(self, ids):
        vectors = self.embed(ids).bfloat16()
        both = torch.cat((vectors.amax(1), vectors[:, 0]), dim=-1)
        return self.head(both.view(len(ids), 2, -1).transpose(1, 2).contiguous().matmul(ONES).float()[..., 0])


ONES = torch.ones(2, 1, dtype=torch.bfloat16)
