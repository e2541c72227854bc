"""Pearson's correlation, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.lab.metrics.pearson import pearson


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_is_numpys(offset):
    draw = torch.Generator().manual_seed(0)
    one = torch.randn(50, dtype=torch.float64, generator=draw)
    other = one + torch.randn(50, dtype=torch.float64, generator=draw) + offset
    assert pearson(one, other) == pytest.approx(np.corrcoef(one, other)[0, 1], abs=1e-9)
    assert pearson(one, -other) == pytest.approx(-pearson(one, other))
    assert abs(pearson(one, other)) < 0.9 < pearson(one, 3 * one + 1)


def test_what_does_not_vary_says_nothing():
    assert pearson(torch.ones(4), torch.arange(4.0)) == 0.0
    assert pearson(torch.tensor([2.0]), torch.tensor([3.0])) == 0.0
