"""Correlations of units, against definitions written out."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.metrics.pearson import pearson
from unrolled.lab.papers.analyses.unit_selectivity import correlations


def test_every_unit_is_correlated_as_one_would_be_alone():
    generator = torch.Generator().manual_seed(0)
    units = torch.randn(50, 7, generator=generator)
    facts = units[:, 3] + 0.5 * torch.randn(50, generator=generator)
    found = correlations(units, facts)
    assert found.tolist() == pytest.approx([pearson(unit, facts) for unit in units.T], abs=1e-6)
    assert int(found.argmax()) == 3
    assert found[[0, 1, 2, 4, 5, 6]].abs().max() < 0.6  # the others know nothing of it


def test_what_does_not_vary_says_nothing():
    units = torch.tensor([[1.0, 2.0], [1.0, 3.0]])
    assert correlations(units, torch.tensor([0.0, 1.0])).tolist() == pytest.approx([0, 1])
    assert correlations(units, torch.tensor([4.0, 4.0])).tolist() == [0, 0]
