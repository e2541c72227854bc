r"""The multiplicative RNN: the input chooses the transition through a factorised product.

.. math:: m = (W_{mx} x) ⊙ (W_{mh} h), \qquad h' = \tanh(W_{hx} x + W_{hm} m + b)

so that the transition matrix is W_hm diag(W_mx x) W_mh. There are as many factors as units, as in
Second-order RNNs.

Source:
    Sutskever et al. (2011), Generating text with recurrent neural networks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import FactoredProduct

__all__ = ["MRNN"]


class MRNN(Cell):
    """An Elman network that reads the product m in place of its own state.

    Both products of the input are rows of one matrix, first those of m, then those of h.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "mrnn"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, input_size))
        self.weight_mh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.weight_hm = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(hidden_size)) if bias else None)
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute tanh(W_hx x + W_hm m + b)."""
        for_m, for_h = linear(inputs, self.weight_ih).chunk(2, dim=-1)
        m = for_m * linear(state, self.weight_mh)
        return torch.tanh(for_h + linear(m, self.weight_hm, self.bias))

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        first = self.checked_start(inputs, state)
        to_m, to_h = self.weight_ih.split(self.hidden_size)
        by_input, for_m = linear(inputs, to_h, self.bias), linear(inputs, to_m)
        kernel = GatedKernel(FactoredProduct(), ActivationUpdate())
        return run_kernel(kernel, by_input, first, self.weight_mh, self.weight_hm, for_m)
