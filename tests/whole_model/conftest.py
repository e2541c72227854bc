"""Every test builds its models from the same seed, in float64 unless it says otherwise."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
