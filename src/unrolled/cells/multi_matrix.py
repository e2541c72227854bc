r"""Multi-matrix cells: a key, carried along in the state, weighs K transition matrices.

No mixed matrix is built: all U_j h are one product with the stacked matrix, then a weighted sum.

Source:
    Second-order RNNs, eq. 6-22 and section 5.3. The paper drops the biases.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate, LSTMUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.multi_matrix_product import MultiMatrixProduct
from unrolled.sizes import checked_size

__all__ = ["MMLSTM", "MMRNN"]

GATES = 4


class MMRNN(Cell):
    r"""The multi-matrix RNN: an Elman network with K transition matrices and a choice among them.

    .. math::
        k' = \mathrm{softmax}(P [k; h; x]), \qquad h' = \tanh(W x + \sum_j k'_j U_j h + b),
        \qquad k_0 = (1/K, …, 1/K)

    The state is [k; h]. P is kept in three pieces, ``weight_kk``, ``weight_kh`` and ``weight_kx``, by what they
    multiply.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists.
        choices: Number K of choice matrices.

    Raises:
        UsageError: If ``choices`` is not a positive integer.

    Source:
        Second-order RNNs, eq. 6-8 and section 5.3.
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
        """Return the state before the first token: every choice has the same weight."""
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
        """Run the cell over a sequence with a kernel."""
        first = self.checked_initial_state(inputs, state)
        from_input, for_key = linear(inputs, self.weight_ih, self.bias), linear(inputs, self.weight_kx)
        kernel = GatedKernel(MultiMatrixProduct(1, self.choices), ActivationUpdate())
        return run_kernel(kernel, from_input, first, self.weight_hh, self.weight_kk, self.weight_kh, for_key)


class MMLSTM(Cell):
    r"""The multi-matrix LSTM: each gate has its own key, which weighs K choice matrices of that gate.

    .. math::
        k_a' = \mathrm{softmax}(P_a [k_a; h; x]), \qquad z_a = W_a x + \sum_j k'_{a,j} U_{a,j} h + b_a,
        \qquad a ∈ \{i, f, g, o\}

    .. math::
        i, f, o = σ(z),\; g = \tanh(z_g),\; c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c'),
        \qquad k_{a,0} = (1/K, …, 1/K)

    The state is [k_i; k_f; k_g; k_o; c; h]. ``weight_hh`` stacks U_{a,j} gate by gate, and choice by choice within a
    gate. P has the three pieces ``weight_kk``, ``weight_kh`` and ``weight_kx``; a gate's key reads its own past only.
    The paper sums only two of the forget gate's matrices (eq. 14), which is probably an error; here all are summed.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists.
        choices: Number K of choice matrices of each gate.

    Raises:
        UsageError: If ``choices`` is not a positive integer.

    Source:
        Second-order RNNs, eq. 9-22 and section 5.3.
    """

    name = "mmlstm"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, choices: int = 4) -> None:
        hidden_size, choices = checked_size("hidden_size", hidden_size), checked_size("choices", choices)
        keys = GATES * choices
        super().__init__(input_size, hidden_size, state_size=keys + 2 * hidden_size)
        self.choices = choices
        self.weight_ih = nn.Parameter(torch.empty(GATES * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(keys * hidden_size, hidden_size))
        self.weight_kk = nn.Parameter(torch.empty(GATES, choices, choices))
        self.weight_kh = nn.Parameter(torch.empty(keys, hidden_size))
        self.weight_kx = nn.Parameter(torch.empty(keys, input_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(GATES * hidden_size)) if bias else None)
        self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first token: every choice has the same weight."""
        state = super().initial_state(batch)
        state[:, : GATES * self.choices] = 1 / self.choices
        return state

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute [k'; c'; h']."""
        d, per_gate = self.hidden_size, (GATES, self.choices)
        keys, cell, hidden = state.split((GATES * self.choices, d, d), dim=-1)
        past = (self.weight_kk @ keys.unflatten(-1, per_gate).unsqueeze(-1)).squeeze(-1)
        fresh = linear(hidden, self.weight_kh) + linear(inputs, self.weight_kx)
        key = torch.softmax(past + fresh.unflatten(-1, per_gate), dim=-1)
        products = linear(hidden, self.weight_hh).unflatten(-1, (*per_gate, d))
        mixed = (key.unsqueeze(-2) @ products).squeeze(-2).flatten(-2)
        i, f, g, o = (linear(inputs, self.weight_ih, self.bias) + mixed).chunk(GATES, dim=-1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat((key.flatten(-2), cell, torch.sigmoid(o) * torch.tanh(cell)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        first = self.checked_initial_state(inputs, state)
        from_input, for_key = linear(inputs, self.weight_ih, self.bias), linear(inputs, self.weight_kx)
        kernel, per_gate = (
            GatedKernel(MultiMatrixProduct(GATES, self.choices), LSTMUpdate()),
            torch.block_diag(*self.weight_kk),
        )
        return run_kernel(kernel, from_input, first, self.weight_hh, per_gate, self.weight_kh, for_key)
