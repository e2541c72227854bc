r"""The multiplicative LSTM of Krause et al.: an LSTM whose gates read m in place of h.

.. math::
    m = (W_{mx} x) ⊙ (W_{mh} h),\; i, f, o = σ(W x + U m + b),\; g = \tanh(W_g x + U_g m + b_g),\;
    c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c')

The state is [c; h]. All four gates share one m, and m has as many factors as there are units.

Source:
    Krause et al. (2016), Multiplicative LSTM for sequence modelling, arXiv:1609.07959.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import LSTMUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import FactoredProduct

__all__ = ["MLSTM"]


class MLSTM(Cell):
    """Three gates over a carried cell, all of them read from the product m.

    The products of the input are rows of one matrix: those of m, then those of the gates i, f, g, o.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "mlstm"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, state_size=2 * hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(5 * hidden_size, input_size))
        self.weight_mh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.weight_hm = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(4 * hidden_size)) if bias else None)
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute [c'; h']."""
        d = self.hidden_size
        by_input = linear(inputs, self.weight_ih)
        m = by_input[..., :d] * linear(state[..., d:], self.weight_mh)
        i, f, g, o = (by_input[..., d:] + linear(m, self.weight_hm, self.bias)).chunk(4, dim=-1)
        cell = torch.sigmoid(f) * state[..., :d] + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat((cell, torch.sigmoid(o) * torch.tanh(cell)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        first = self.checked_start(inputs, state)
        to_m, to_gates = self.weight_ih.split((self.hidden_size, 4 * self.hidden_size))
        by_input, for_m = linear(inputs, to_gates, self.bias), linear(inputs, to_m)
        kernel = GatedKernel(FactoredProduct(), LSTMUpdate())
        return run_kernel(kernel, by_input, first, self.weight_mh, self.weight_hm, for_m)
