"""Hybrids of recurrent layers and attention: the kernel of torch has the n-grams of attention that is written out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

D, WORDS = 8, 11
TOKENS = torch.tensor([[3, 1, 4, 1, 5]])


def by_kernel(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


def by_keywords(query, key, value):
    return F.scaled_dot_product_attention(query=query, key=key, value=value, is_causal=True, enable_gqa=True)


def written(query, key, value):
    key, value = (each.repeat_interleave(query.shape[1] // each.shape[1], 1) for each in (key, value))
    later = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).triu(1)
    return (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(later, -torch.inf).softmax(-1) @ value


def of_half_the_weight(query, key, value):
    return written(query, key, value) * 0.5


class Hybrid(nn.Module):
    """A GRU, attention of two heads that share a key, and an LSTM, each beside a residual."""

    def __init__(self, attend):
        super().__init__()
        torch.manual_seed(0)
        self.attend, self.embed, self.out = attend, nn.Embedding(WORDS, D), nn.Linear(D, D)
        self.first, self.query, self.both = nn.GRU(D, D, batch_first=True), nn.Linear(D, D), nn.Linear(D, D)
        self.second, self.head = nn.LSTM(D, D, batch_first=True), nn.Linear(D, 2)
        self.double()

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.first(x)[0]
        query = self.query(x).unflatten(2, (2, 4)).transpose(1, 2)
        key, value = self.both(x)[:, None].chunk(2, dim=-1)
        x = x + self.out(self.attend(query, key, value).transpose(1, 2).flatten(2))
        return self.head(self.second(x)[0][:, -1])


@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("kernel", [by_kernel, by_keywords])
def test_the_kernel_has_the_n_grams_and_the_account_of_what_it_computes(kernel, expansion):
    found, expected, other = (
        unrolled.explain(Hybrid(attend), TOKENS, target=1, expansion=expansion)
        for attend in (kernel, written, of_half_the_weight)
    )
    assert abs(found.ledger.remainder) < 1e-12
    assert [len(each) for each in found.sequences] == [5, 5]
    torch.testing.assert_close(found.token_scores, expected.token_scores, rtol=0, atol=1e-12)
    assert (found.token_scores - other.token_scores).abs().max() > 1e-3  # the control
    account, by_hand = (
        unrolled.account(Hybrid(attend), TOKENS, target=1, expansion=expansion) for attend in (kernel, written)
    )
    assert account.closes
    torch.testing.assert_close(account.tokens, by_hand.tokens, rtol=0, atol=1e-12)


class Decodes(Hybrid):
    """Attends step by step through one mask, of which it frees one place more at each step."""

    def attend_by_steps(self, x):
        mask, outputs = torch.full((1, x.shape[1]), -torch.inf, dtype=x.dtype), []
        for step in range(x.shape[1]):
            mask[:, step] = 0
            outputs.append(self.attend(x[:, step : step + 1], x, x, mask))
        return torch.cat(outputs, 1)

    def forward(self, tokens):
        x = self.attend_by_steps(self.first(self.embed(tokens))[0])
        return self.head(self.second(x)[0][:, -1])


def written_with_mask(query, key, value, mask):
    return (query @ key.mT / query.shape[-1] ** 0.5 + mask).softmax(-1) @ value


def without_mask(query, key, value, mask):
    return written_with_mask(query, key, value, 0 * mask.isinf())


@pytest.mark.parametrize("call", [unrolled.explain, unrolled.account])
def test_a_mask_that_changes_in_place_weighs_as_it_did_at_its_step(call):
    found, expected, other = (
        call(Decodes(attend), TOKENS, target=1)
        for attend in (F.scaled_dot_product_attention, written_with_mask, without_mask)
    )
    found, expected, other = (
        each.triangle.contributions if call is unrolled.explain else each.tokens for each in (found, expected, other)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert (found - other).abs().max() > 1e-4
