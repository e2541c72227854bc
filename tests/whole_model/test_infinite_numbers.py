"""Where NaN or infinity stands that an account cannot divide."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import NonFiniteError


def test_the_infinite_number_of_an_argument_is_named():
    class Reads(nn.Linear):
        def forward(self, given, scale):
            return super().forward(given["series"][1]) * scale

    series = torch.ones(2, 3)
    series[1, 2] = torch.nan
    with pytest.raises(NonFiniteError, match=r"finite numbers; argument 0\[series\]\[1\] is nan at \(1, 2\)$"):
        unrolled.account(Reads(3, 2), {"series": [torch.ones(1), series]}, scale=1.0, target=1)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_mask_of_minus_infinity_is_not_to_blame_for_nan(sparse):
    class Masked(nn.Linear):
        def forward(self, mask, graph, x):
            return super().forward(torch.sparse.mm(graph, (mask + x).softmax(-1)))

    mask, graph, x = torch.tensor([0.0, -torch.inf, 0.0]), sparse(torch.eye(2)), torch.ones(2, 3)
    assert bool(torch.isfinite(Masked(3, 2)(mask, graph, x)).all())
    x[1, 2] = torch.nan
    with pytest.raises(NonFiniteError, match=r"finite numbers; argument 2 is nan at \(1, 2\)$"):
        unrolled.account(Masked(3, 2), mask, graph, x, target=1)
    with pytest.raises(NonFiniteError, match=r"finite numbers; argument 0 is -inf at \(1,\)$"):
        unrolled.account(Masked(3, 2), mask, graph, 0 * x.nan_to_num() + 3e38, target=lambda out: out[:, 0] - torch.inf)


def test_an_infinite_weight_of_another_class_is_named():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    with torch.no_grad():
        model[1].weight[0, 0] = torch.inf
    assert bool(torch.isfinite(model(torch.ones(1, 3))[:, 1]).all())
    with pytest.raises(NonFiniteError, match=r"weights 1\.weight hold NaN or infinity"):
        unrolled.account(model, torch.ones(1, 3), target=1)
