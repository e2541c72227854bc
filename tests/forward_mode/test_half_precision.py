"""Norms and attention of half precision have the values and derivatives of double precision, up to rounding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from unrolled.forward_mode.written_operations import with_written_operations

D = 4


@pytest.mark.parametrize(
    "function",
    [
        lambda z: F.layer_norm(600 * z, (D,)),
        lambda z: F.instance_norm(600 * z[None]),
        lambda z: F.batch_norm(600 * z, None, None, training=True),
        lambda z: F.scaled_dot_product_attention(100 * z, 100 * z, z),
    ],
)
def test_norms_and_attention_of_half_precision_do_not_overflow(function):
    """Squares and products are larger there than the largest number of the type, 65504."""
    z, direction = torch.randn(2, 3, D, generator=torch.Generator().manual_seed(21), dtype=torch.float64)
    function = with_written_operations(function)
    expected, slope = torch.func.jvp(function, (z,), (direction,))
    found, change = torch.func.jvp(function, (z.half(),), (direction.half(),))
    torch.testing.assert_close(found.double(), expected, rtol=0.01, atol=0.01)
    torch.testing.assert_close(change.double(), slope, rtol=0.02, atol=0.02 * float(slope.abs().max()))
    assert float((600 * z).square().max()) > 65504
