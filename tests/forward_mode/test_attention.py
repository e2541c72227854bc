"""Attention as forward mode differentiates it, against torch's and against differences."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from unrolled.forward_mode.written_operations import with_written_operations

D = 4


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "mask",
    [
        None,
        torch.tensor([[True, False, True], [False, True, True]]),
        torch.tensor([[True, False, True], [False, False, False]]),
        torch.tensor([[0.0, -math.inf, 1.0], [-math.inf, -math.inf, -math.inf]]).double(),
    ],
)
def test_attention_is_that_of_torch(mask, groups):
    """Also of a place that attends to none, as to a memory that is empty yet: it reads zero, and none changes it."""
    query, key, value = (
        draw(2, 4, 2, D, seed=12),
        draw(2, 4 // groups, 3, D, seed=13),
        draw(2, 4, 3, 5, seed=14),
    )

    def attend_all(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=groups > 1)

    found = with_written_operations(attend_all)(query, key, value)
    torch.testing.assert_close(found, attend_all(query, key, value), rtol=1e-12, atol=1e-12)

    def moved(alpha):
        return attend_all(query + alpha * query.sin(), key + alpha * key.sin(), value + alpha * value.sin())

    zero, step = torch.zeros((), dtype=torch.float64, requires_grad=True), 1e-5
    change = torch.func.jvp(with_written_operations(moved), (zero,), (torch.ones_like(zero),))[1]
    torch.testing.assert_close(change, (moved(step) - moved(-step)) / (2 * step), rtol=1e-7, atol=1e-8)
    (back,) = torch.autograd.grad(with_written_operations(moved)(zero).sum(), zero)
    torch.testing.assert_close(back, change.sum())
