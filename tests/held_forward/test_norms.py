"""A norm is credited to its operands whatever axes it is taken over, and however these are named."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

X = torch.randn(1, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


NORMS = {
    "of all": lambda x: x.norm().reshape(1, 1),
    "by position": lambda x: x.norm(1, 2),
    "by name": lambda x: x.norm(dim=-1),
    "of two axes": lambda x: torch.linalg.vector_norm(x, 3.0, (1, 2))[:, None],
    "kept": lambda x: torch.linalg.vector_norm(x, dim=2, keepdim=True)[..., 0],
    "of a matrix": lambda x: torch.linalg.norm(x, "nuc", dim=(1, 2))[:, None],
    "of all but an axis": lambda x: torch.norm_except_dim(x[0], 2, 0).reshape(1, -1),
    "of all but the last": lambda x: torch.norm_except_dim(x[0], 2, 1).reshape(1, -1),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_the_sum_of_what_its_entries_contribute(name):
    found = unrolled.account(Model(NORMS[name]), X, target=0)
    assert found.closes
    torch.testing.assert_close(found.inputs, found.output, rtol=1e-12, atol=0)
    assert not found.constants


def test_a_norm_of_order_zero_counts_and_is_held():
    def counted(x):
        return x.sum(2) * torch.linalg.vector_norm(x, 0, dim=2)

    found = unrolled.account(Model(counted), X, target=0)
    torch.testing.assert_close(found.features["0"][0, 0], 4 * X[0, 0])
    assert found.closes
