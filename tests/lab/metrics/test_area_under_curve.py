"""The area under the curve, against its definition written out."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from unrolled.lab.metrics.area_under_curve import area_under_curve


def test_the_area_is_the_share_of_pairs_in_order():
    generator = torch.Generator().manual_seed(1)
    values = torch.randint(5, (40,), generator=generator).float()  # many are equal
    truth = torch.rand(40, generator=generator) < 0.3
    scores, positive = values.tolist(), truth.tolist()
    pairs = list(product(values[truth].tolist(), values[~truth].tolist()))
    share = sum((high > low) + 0.5 * (high == low) for high, low in pairs) / len(pairs)
    assert area_under_curve(scores, positive) == pytest.approx(share)
    assert area_under_curve((-values).tolist(), positive) == pytest.approx(1 - share)
    assert area_under_curve(truth.float().tolist(), positive) == 1
    assert area_under_curve([0.0] * 40, positive) == 0.5
    assert area_under_curve(scores, [True] * 40) is None
