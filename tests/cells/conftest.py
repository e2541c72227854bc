"""Tests of cells compute in float64 where they ask for it."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def double():
    """Compute in float64, from one seed."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
