"""Means over no words, which are 0/0 and replaced afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from equal_accounts import everything

IDS = torch.tensor([[3, 1, 4, 5], [2, 7, 0, 0], [0, 0, 0, 0]])
LOW = float("-inf")


class Reader(nn.Module):
    """Reads states of words by a pooling that is given the mask of the words and a score of each."""

    def __init__(self, pool):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True)
        self.score, self.head = nn.Linear(5, 1), nn.Linear(5, 2)
        self.pool = pool
        self.double()

    def forward(self, ids, mask):
        states = self.rnn(self.embed(ids))[0]
        return self.head(self.pool(states, mask[..., None], self.score(states)))


def mean(states, mask, least=1):
    return (states * mask).sum(1) / mask.sum(1).clamp(min=least)


def attention(states, mask, scores, least=1e-30):
    weights = scores.masked_fill(~mask, LOW).softmax(1).nan_to_num(0.0)
    return (weights * states).sum(1) / weights.sum(1).clamp(min=least)


def quotient(states, mask):
    return (states * mask).sum(1) / mask.sum(1)


def written(z):
    z[z != z] = 0
    return z


MEANS = {
    "nan_to_num": lambda h, m, _: quotient(h, m).nan_to_num(0.0),
    "where": lambda h, m, _: torch.where(m.any(1), quotient(h, m), 0.0),
    "masked_fill": lambda h, m, _: quotient(h, m).masked_fill(~m.any(1), 0.0),
    "set": lambda h, m, _: written(quotient(h, m)),
    "product": lambda h, m, _: ((h * m).sum(1) * (1 / m.sum(1))).nan_to_num(0.0),
    "nanmean": lambda h, m, _: torch.where(m, h, torch.nan).nanmean(1).nan_to_num(0.0),
    "all dims": lambda h, m, _: torch.stack(
        [torch.where(m[..., 0], each, torch.nan).nanmean(1).nan_to_num(0.0) for each in h.unbind(-1)], -1
    ),
    "matmul": lambda h, m, _: ((m / m.sum(1, keepdim=True)).transpose(1, 2).to(h.dtype) @ h)[:, 0].nan_to_num(0.0),
    "einsum": lambda h, m, _: torch.einsum(
        "bt,btd->bd", (m / m.sum(1, keepdim=True))[..., 0].to(h.dtype), h
    ).nan_to_num(),
}


def account(pool, target=1):
    found = unrolled.account(Reader(pool), IDS, IDS != 0, target=target)
    assert found.closes
    return found


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_over_no_words_that_is_replaced_is_one_whose_divisor_is_not_zero(name):
    found, expected = account(MEANS[name]), account(lambda h, m, _: mean(h, m))
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-10, atol=1e-12)
    assert not found.tokens[2].any()
    one, other = (
        unrolled.explain_batch(Reader(pool), IDS, IDS != 0, target=1)
        for pool in (MEANS[name], lambda h, m, _: mean(h, m))
    )
    for each, same in zip(one, other, strict=True):
        assert not any("ray" in note for note in each.notes)
        torch.testing.assert_close(each.token_scores, same.token_scores, rtol=1e-10, atol=1e-12)


def test_a_mean_that_is_divided_by_another_number_is_another():
    """The control."""
    found, other = account(MEANS["where"]), account(lambda h, m, _: mean(h, m, least=3))
    assert float((found.tokens - other.tokens)[1].abs().max()) > 1e-3


def test_attention_over_no_words_that_is_replaced_reads_none():
    def replaced(h, m, s):
        return (s.masked_fill(~m, LOW).softmax(1) * h).sum(1).nan_to_num(0.0)

    found, expected = account(replaced), account(attention)
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-10, atol=1e-12)
    assert not found.tokens[2].any()
    assert bool((found.tokens[0].abs() > 1e-6).all())


def test_a_quantile_of_no_words_that_is_replaced_has_no_part():
    found = account(lambda h, m, _: torch.nanquantile(torch.where(m, h, torch.nan), 0.3, dim=1).nan_to_num(0.0))
    assert not found.tokens[2].any()
    assert bool((found.tokens[0].abs() > 1e-6).any())
