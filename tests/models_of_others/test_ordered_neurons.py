"""The ordered-neurons LSTM (Shen et al. 2019, arXiv:1810.09536): gates times, and beside, cumulative softmaxes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, one_of

V, D = 30, 6
TEXT = ids(2, 6)


def as_published(f, i, cf, ci, c, g):
    over = cf * ci
    return (f * over + (cf - over)) * c + (i * over + (ci - over)) * g


def term_by_term(f, i, cf, ci, c, g):
    over = cf * ci
    return over * (f * c) + (cf - over) * c + over * (i * g) + (ci - over) * g


def with_one_order(f, i, cf, ci, c, g):
    return cf * (f * c) + ci * (i * g)


class OrderedCell(nn.Module):
    """Three chunks of two units; ``memory`` is how the next memory is written."""

    def __init__(self, memory):
        super().__init__()
        self.x, self.h, self.memory = nn.Linear(4, 4 * D + 6), nn.Linear(D, 4 * D + 6), memory

    def forward(self, x, state):
        h, c = state
        z = self.x(x) + self.h(h)
        ci, cf = z[:, :6].softmax(-1).view(-1, 2, 3, 1).cumsum(2).unbind(1)
        f, i, o, g = z[:, 6:].view(-1, 4, 3, 2).unbind(1)
        c = self.memory(f.sigmoid(), i.sigmoid(), cf, 1 - ci, c.view(-1, 3, 2), g.tanh())
        return (o.sigmoid() * torch.tanh(c)).flatten(1), c.flatten(1)


class Ordered(nn.Module):
    def __init__(self, memory=as_published):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head = nn.Embedding(V, 4), OrderedCell(memory), nn.Linear(D, 2)

    def forward(self, tokens):
        h = c = self.head.weight.new_zeros(len(tokens), D)
        for x in self.embed(tokens).unbind(1):
            h, c = self.cell(x, (h, c))
        return self.head(h)


def test_account_and_explanation_are_right():
    case = Model(Ordered, (TEXT,), 1, (0,), alone=one_of(TEXT))
    judge_account(case)
    judge_explanation(case)


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_it_is_that_of_the_memory_written_term_by_term(expansion):
    found, expected, other = (
        unrolled.account(Ordered(memory).double(), TEXT, target=1, expansion=expansion).tokens
        for memory in (as_published, term_by_term, with_one_order)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    assert float((found - other).abs().max()) > 1e-3  # the control


def test_so_are_the_n_grams_of_its_cell_by_shares():
    found, expected, other = (
        unrolled.explain(Ordered(memory).double(), TEXT[:1], target=1, expansion="shares").triangle.contributions
        for memory in (as_published, term_by_term, with_one_order)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    assert float((found - other).abs().max()) > 1e-3  # the control
