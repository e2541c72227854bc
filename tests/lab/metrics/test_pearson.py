"""Pearson's correlation, against its formula."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.metrics.pearson import pearson


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_is_the_covariance_over_the_standard_deviations(offset):
    draw = torch.Generator().manual_seed(0)
    one = torch.randn(50, dtype=torch.float64, generator=draw)
    other = one + torch.randn(50, dtype=torch.float64, generator=draw) + offset
    a, b = one - one.mean(), other - other.mean()
    expected = ((a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()).item()
    assert pearson(one, other) == pytest.approx(expected, abs=1e-9)
    assert pearson(one, -other) == pytest.approx(-pearson(one, other))
    assert abs(pearson(one, other)) < 0.9 < pearson(one, 3 * one + 1)


def test_what_does_not_vary_says_nothing():
    assert pearson(torch.ones(4), torch.arange(4.0)) == 0.0
    assert pearson(torch.tensor([2.0]), torch.tensor([3.0])) == 0.0
