r"""The gated recurrent unit as first published: the reset gate before the product.

.. math::
    r = σ(W_r x + U_r h + b_r),\; z = σ(W_z x + U_z h + b_z),\;
    n = \tanh(W_n x + U_n (r ⊙ h) + b_n),\; h' = (1 - z) ⊙ h + z ⊙ n

Here z is the share that is written anew, as in the lecture; in torch.nn.GRU, and in Cho et al., it is the
share that is kept. Gates stand in the order r, z, n.

Source:
    Cho et al. (2014), arXiv:1406.1078; CS577, lecture 5, for the sense of z.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.gru_reset_before import ResetBeforeKernel

__all__ = ["GRUBefore"]


class GRUBefore(Cell):
    """Two gates over one state, one of them on what the candidate sees of it.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "gru_before"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(3 * hidden_size)) if bias else None)
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute (1 - z) ⊙ h + z ⊙ n."""
        two = 2 * self.hidden_size
        by_input = linear(inputs, self.weight_ih, self.bias)
        gates = torch.sigmoid(by_input[..., :two] + linear(state, self.weight_hh[:two]))
        reset, update = gates.chunk(2, dim=-1)
        candidate = torch.tanh(by_input[..., two:] + linear(reset * state, self.weight_hh[two:]))
        return state + update * (candidate - state)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        first, by_input = self.checked_start(inputs, state), linear(inputs, self.weight_ih, self.bias)
        return run_kernel(ResetBeforeKernel(), by_input, first, self.weight_hh)
