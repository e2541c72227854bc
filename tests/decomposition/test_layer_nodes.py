"""A held network is a linear map of its input whose product forward is the transpose of its product backward."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.expansions import resolve
from unrolled.held_forward import Rows
from unrolled.held_forward.recorded_maps import image, pull_back

X = torch.randn(5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def held(kind, expansion, **options):
    """Run a network held; return its output and the leaf that it is linear in."""
    torch.manual_seed(1)
    network = kind(3, 4, **options).double().requires_grad_(False)
    rows = Rows(network)
    mode, opened = HeldModel(rows, resolve(expansion)), rows.open("feature", "x", X)
    with torch.enable_grad(), networks_as_operations(network), mode:
        output = network(opened)[0]
    return output, rows.rows[0].leaf


@pytest.mark.quick_diagonal(3)  # quick: every network, every expansion
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
@pytest.mark.parametrize("expansion", ["secant", "operating", "gates", "shares", "zero"])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_products_forward_and_backward_are_those_of_one_map(kind, expansion, options):
    output, leaf = held(kind, expansion, **options)
    generator = torch.Generator().manual_seed(2)
    along, covector = (torch.randn(s, dtype=X.dtype, generator=generator) for s in (leaf.shape, output.shape))
    forward = (covector * image(output, [leaf], [along])).sum()
    (back,) = pull_back(output, [leaf], covector)
    torch.testing.assert_close(forward, (back * along).sum(), rtol=1e-12, atol=1e-13)
    (other,) = pull_back(output, [leaf], covector.flip(0))
    assert abs(float(forward - (other * along).sum())) > 1e-4  # the control: another covector
