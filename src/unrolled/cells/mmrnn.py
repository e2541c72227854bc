r"""The multi-matrix RNN: a key, carried along, weighs K choice matrices.

.. math::
    k' = \mathrm{softmax}(P [k; h; x]), \qquad h' = \tanh(W x + \sum_j k'_j U_j h + b),
    \qquad k_0 = (1/K, …, 1/K)

The state is [k; h]. The mixed matrix is never built: all U_j h are one product with the stacked matrix,
then a weighted sum. The paper drops b.

Source:
    Second-order RNNs, eq. 6-8 and section 5.3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.multi_matrix_product import MultiMatrixProduct
from unrolled.sizes import checked_size

__all__ = ["MMRNN"]


class MMRNN(Cell):
    """An Elman network with K transition matrices and a choice among them.

    P is kept in three pieces, ``weight_kk``, ``weight_kh`` and ``weight_kx``, by what they multiply.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
        choices: K, the number of choice matrices.

    Raises:
        UsageError: when the number of choices is not a positive integer.
    """

    name = "mmrnn"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, choices: int = 4) -> None:
        hidden_size, choices = checked_size("hidden_size", hidden_size), checked_size("choices", choices)
        super().__init__(input_size, hidden_size, state_size=choices + hidden_size)
        self.choices = choices
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(choices * hidden_size, hidden_size))
        self.weight_kk = nn.Parameter(torch.empty(choices, choices))
        self.weight_kh = nn.Parameter(torch.empty(choices, hidden_size))
        self.weight_kx = nn.Parameter(torch.empty(choices, input_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(hidden_size)) if bias else None)
        self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        """Give the state before the first token: every choice weighs the same."""
        state = super().initial_state(batch)
        state[:, : self.choices] = 1 / self.choices
        return state

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute [k'; h']."""
        key, hidden = state[..., : self.choices], state[..., self.choices :]
        seen = linear(hidden, self.weight_kh) + linear(inputs, self.weight_kx)
        key = torch.softmax(linear(key, self.weight_kk) + seen, dim=-1)
        products = linear(hidden, self.weight_hh).unflatten(-1, (self.choices, self.hidden_size))
        mixed = (key.unsqueeze(-2) @ products).squeeze(-2)
        return torch.cat((key, torch.tanh(linear(inputs, self.weight_ih, self.bias) + mixed)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        first = self.checked_start(inputs, state)
        by_input, for_key = linear(inputs, self.weight_ih, self.bias), linear(inputs, self.weight_kx)
        kernel = GatedKernel(MultiMatrixProduct(1, self.choices), ActivationUpdate())
        return run_kernel(kernel, by_input, first, self.weight_hh, self.weight_kk, self.weight_kh, for_key)
