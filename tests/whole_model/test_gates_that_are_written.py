"""Entries of a gate that a model writes in place count as they do where it makes a tensor of the same entries."""

from __future__ import annotations

import pytest
import torch

import unrolled
from equal_accounts import Read, assert_equal
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import D, ids


def gate(h):
    return torch.sigmoid(3.0 * h)


def a_number(_, h):
    z = gate(h)
    z[:, 0] = 1.0
    return z * h


def by_a_mask(_, h):
    z = gate(h)
    z[h > 0] = 0.0
    return z * torch.tanh(h)


def another_gate(_, h):
    z = gate(h)
    z[:, :2] = torch.sigmoid(h[:, 2:4])
    return z * h


def a_content(_, h):
    z = gate(h)
    z[:, 0] = h[:, 1]
    return z.sum(1, keepdim=True) * h


def filled(_, h):
    z = gate(h)
    z[:, 1].fill_(0.5)
    z.index_fill_(1, torch.tensor([0]), 1.0)
    return z.sum(1, keepdim=True) * h


def after_a_product(_, h):
    z = gate(h)
    y = z * h
    z[:, 0] = 1.0
    return torch.cat((y, z * h), 1)


def ones(h):
    return torch.ones_like(h[:, :1])


EQUAL = {
    "a number": (a_number, lambda _, h: torch.cat((ones(h), gate(h)[:, 1:]), 1) * h),
    "a number by a mask": (by_a_mask, lambda _, h: torch.where(h > 0, 0.0, gate(h)) * torch.tanh(h)),
    "another gate": (
        another_gate,
        lambda _, h: torch.cat((torch.sigmoid(h[:, 2:4]), gate(h)[:, 2:]), 1) * h,
    ),
    "a content": (
        a_content,
        lambda _, h: torch.cat((h[:, 1:2], gate(h)[:, 1:]), 1).sum(1, keepdim=True) * h,
    ),
    "fill_ and index_fill_": (
        filled,
        lambda _, h: torch.cat((ones(h), 0.5 * ones(h), gate(h)[:, 2:]), 1).sum(1, keepdim=True) * h,
    ),
    "after a product": (
        after_a_product,
        lambda _, h: torch.cat((gate(h) * h, torch.cat((ones(h), gate(h)[:, 1:]), 1) * h), 1),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_the_account_is_that_of_the_joined_tensor(name):
    assert_equal(*EQUAL[name])


def scaled(_, h):
    z = gate(h)
    z[:, 0] *= 2
    return z * h


def scaled_by_a_view(_, h):
    z = gate(h)
    z[:, 0].mul_(2.0)
    return z * h


def through_a_view(_, h):
    z = gate(h)
    part = z[:, :2]
    z[:, 0] = h[:, 1]
    return torch.cat((part * h[:, :2], z * h), 1)


@pytest.mark.parametrize("read", [scaled, scaled_by_a_view, through_a_view])
def test_a_gate_that_is_changed_through_a_view_closes(read):
    found = unrolled.account(Read(read), ids(3, 4), target=1)
    assert found.closes
    assert unrolled.explain(Read(read), ids(1, 4), target=1).token_scores.abs().max() > 1e-3


def test_a_part_that_chunk_gave_is_refused():
    def read(_, h):
        one, other = gate(h).chunk(2, 1)
        one[:, 0] = 1.0
        return one * other

    with pytest.raises(UnsupportedOperationError, match=r"in place \(setitem\) that chunk, split or unbind gave"):
        unrolled.account(Read(read), ids(1, 3), target=1)


def test_a_constant_around_a_part_that_is_written_is_a_constant():
    def read(_, h):
        z = torch.ones(len(h), 2 * D, dtype=h.dtype)
        part = z[:, D:]
        part[:, :4] = h[:, :4]
        return z

    def joined(_, h):
        return torch.cat((torch.ones_like(h), h[:, :4], torch.ones_like(h[:, 4:])), 1)

    assert_equal(read, joined)
