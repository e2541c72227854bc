"""Mixtures of experts: each expert multiplies its rows by its matrix, one expert after another or all at once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

V, D, EXPERTS = 12, 8, 3
IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 2]])
has_grouped_mm = pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this version of torch lacks _grouped_mm")


class Experts(nn.Module):
    """A token's vector goes to the expert with the highest score, whose output is weighed by it and read by a GRU."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True)
        self.router, self.head = nn.Linear(D, EXPERTS), nn.Linear(D, 2)
        self.matrices = nn.Parameter(torch.randn(EXPERTS, D, D))
        self.eval()

    def forward(self, ids):
        vectors = self.embed(ids)
        rows = vectors.flatten(0, 1)
        score, expert = self.router(rows).softmax(-1).max(-1)
        return self.head(self.rnn((score[:, None] * self.mix(rows, expert)).view_as(vectors))[0][:, -1])


class OneByOne(Experts):
    def mix(self, rows, expert):
        out = torch.zeros_like(rows)
        for k, matrix in enumerate(self.matrices):
            out[expert == k] = rows[expert == k] @ matrix
        return out


class AllAtOnce(Experts):
    def mix(self, rows, expert):
        order = expert.argsort(stable=True)
        ends = torch.bincount(expert, minlength=EXPERTS)[:EXPERTS].cumsum(0).to(torch.int32)
        out = torch._grouped_mm(rows[order], self.matrices, offs=ends)
        return torch.zeros_like(out).index_copy(0, order, out)


@has_grouped_mm
@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_all_experts_at_once_have_the_account_of_one_after_another(expansion):
    model = OneByOne()
    assert len(model.router(model.embed(IDS)).argmax(-1).unique()) == EXPERTS
    found, expected = (unrolled.account(each(), IDS, target=1, expansion=expansion) for each in (AllAtOnce, OneByOne))
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-5, rtol=1e-4)
    assert found.biases.keys() == expected.biases.keys()
    assert found.closes
    assert found.tokens.abs().max() > 1e-2


@has_grouped_mm
def test_rows_of_no_group_are_nothing():
    """Torch leaves what lies beyond the last end as it finds it."""

    class Fewer(OneByOne):
        def mix(self, rows, expert):
            return torch.cat((super().mix(rows[:-2], expert[:-2]), torch.zeros_like(rows[-2:])))

    class FewerAtOnce(AllAtOnce):
        def mix(self, rows, expert):
            beyond = torch.arange(len(expert)) >= len(expert) - 2
            return super().mix(rows, expert.masked_fill(beyond, EXPERTS)).masked_fill(beyond[:, None], 0.0)

    found, expected = (unrolled.account(each(), IDS, target=1) for each in (FewerAtOnce, Fewer))
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-5, rtol=1e-4)


@has_grouped_mm
def test_a_grouped_product_of_another_form_is_refused_by_its_form():
    class OfColumns(Experts):
        def mix(self, rows, expert):
            ends = torch.tensor([4, D], dtype=torch.int32)
            return torch._grouped_mm(rows, self.matrices[0], offs=ends).sum(0)

    with pytest.raises(UnsupportedOperationError, match=r"_grouped_mm of tensors of 2 and 2 dimensions has no rule"):
        unrolled.account(OfColumns(), IDS, target=1)
