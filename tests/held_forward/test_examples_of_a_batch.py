"""Which example of a batch an entry serves is found in any order, and in float32 after much cancellation."""

from __future__ import annotations

import pytest
import torch

from unrolled.held_forward.linear_output import LinearOutput


@pytest.mark.parametrize("batch", [2, 31, 32, 33, 300, 1025, 2100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_entry_is_traced_to_its_example_in_any_order(batch, dtype):
    torch.manual_seed(0)
    leaf = torch.randn(batch, 3, dtype=dtype, requires_grad=True)
    order = torch.randperm(batch)
    large = 1e6 * torch.randn(3, dtype=dtype)
    shuffled = leaf[order]
    output = (shuffled * large).sum(dim=1) - (shuffled * (large - 1)).sum(dim=1)  # gradients cancel to about 1
    found = LinearOutput(output, [leaf], keeps=True).examples(0)
    assert found is not None
    assert torch.equal(found, order.argsort()[:, None].expand(-1, 3))


@pytest.mark.parametrize("batch", [3, 40])
def test_an_entry_that_two_examples_share_belongs_to_none_of_them(batch):
    leaf = torch.randn(batch, 3, dtype=torch.float64, requires_grad=True)
    output = leaf.sum(dim=1) + leaf[0, 0]  # every example reads the first entry
    assert LinearOutput(output, [leaf], keeps=True).examples(0) is None


@pytest.mark.quick_diagonal(2)  # quick: both sizes, both shares
@pytest.mark.parametrize("share", [0.5, 2 / 3])
@pytest.mark.parametrize("batch", [32, 40])
def test_an_entry_that_two_examples_share_is_not_taken_for_a_third_ones(batch, share):
    leaf = torch.randn(1, dtype=torch.float64, requires_grad=True)
    for one in range(0, batch, 3):
        for other in range(batch):
            read = torch.zeros(batch, dtype=torch.float64)
            read[one] += share
            read[other] += 1 - share
            found = LinearOutput(read * leaf, [leaf], keeps=True).examples(0)
            assert (found is None) == (one != other)


def test_an_entry_that_no_example_reads_is_marked():
    leaf = torch.randn(4, 3, requires_grad=True)
    found = LinearOutput((leaf * torch.tensor([1.0, 0.0, 1.0])).sum(dim=1), [leaf], keeps=True).examples(0)
    assert found is not None
    assert torch.equal(found[:, 1], torch.full((4,), -1))
    assert torch.equal(found[:, 0], torch.arange(4))
