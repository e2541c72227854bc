r"""Multi-matrix cells: a key, carried along in the state, weighs K transition matrices.

No mixed matrix is built: all U_j h are one product with the stacked matrix, then a weighted sum.

Source:
    Second-order RNNs, eq. 6-22 and section 5.3. The paper drops the biases.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell, checked_size
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate, LSTMUpdate
from unrolled.kernels.gated import ElementwiseUpdate, GatedKernel
from unrolled.kernels.products import MultiMatrixProduct

__all__ = ["MMLSTM", "MMRNN"]


class _MultiMatrixCell(Cell):
    """Parameters and choice of a multi-matrix cell; P is kept in three pieces, by what they multiply."""

    gates: ClassVar[int]
    """Number of gates; each has a key of its own."""
    carries_cell: ClassVar[bool]
    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, choices: int = 4) -> None:
        hidden_size, choices = checked_size("hidden_size", hidden_size), checked_size("choices", choices)
        rows, keys = self.gates * hidden_size, self.gates * choices
        super().__init__(input_size, hidden_size, state_size=keys + (1 + self.carries_cell) * hidden_size)
        self.choices, self.keys = choices, keys
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size))
        self.weight_hh = nn.Parameter(torch.empty(choices * rows, hidden_size))
        self.weight_kk = nn.Parameter(torch.empty(*((self.gates,) if self.gates > 1 else ()), choices, choices))
        self.weight_kh = nn.Parameter(torch.empty(keys, hidden_size))
        self.weight_kx = nn.Parameter(torch.empty(keys, input_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(rows)) if bias else None)
        self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first token: every choice has the same weight."""
        state = super().initial_state(batch)
        state[:, : self.keys] = 1 / self.choices
        return state

    def choose(self, inputs: Tensor, keys: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the new keys, shape (…, keys), and the pre-activations of all gates, shape (…, gates·d)."""
        per_gate = (self.gates, self.choices)
        past = self.weight_kk.view(*per_gate, self.choices) @ keys.unflatten(-1, per_gate).unsqueeze(-1)
        fresh = linear(hidden, self.weight_kh) + linear(inputs, self.weight_kx)
        key = torch.softmax(past.squeeze(-1) + fresh.unflatten(-1, per_gate), dim=-1)
        products = linear(hidden, self.weight_hh).unflatten(-1, (*per_gate, self.hidden_size))
        mixed = (key.unsqueeze(-2) @ products).squeeze(-2).flatten(-2)
        return key.flatten(-2), linear(inputs, self.weight_ih, self.bias) + mixed

    def run_update(self, update: ElementwiseUpdate, inputs: Tensor, state: Tensor | None) -> Tensor:
        """Run the cell over a sequence with a kernel: s_0 … s_T, shape (time + 1, batch, state)."""
        first = self.checked_initial_state(inputs, state)
        from_input, for_key = linear(inputs, self.weight_ih, self.bias), linear(inputs, self.weight_kx)
        kernel = GatedKernel(MultiMatrixProduct(self.gates, self.choices), update)
        key_to_key = torch.block_diag(*self.weight_kk) if self.gates > 1 else self.weight_kk
        return run_kernel(kernel, from_input, first, self.weight_hh, key_to_key, self.weight_kh, for_key)


class MMRNN(_MultiMatrixCell):
    r"""The multi-matrix RNN: an Elman network with K transition matrices and a choice among them.

    .. math::
        k' = \mathrm{softmax}(P [k; h; x]), \qquad h' = \tanh(W x + \sum_j k'_j U_j h + b),
        \qquad k_0 = (1/K, …, 1/K)

    The state is [k; h]. The pieces of P are ``weight_kk``, ``weight_kh`` and ``weight_kx``.

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
    gates = 1
    carries_cell = False

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute [k'; h']."""
        keys, hidden = state.split((self.keys, self.hidden_size), dim=-1)
        key, z = self.choose(inputs, keys, hidden)
        return torch.cat((key, torch.tanh(z)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        return self.run_update(ActivationUpdate(), inputs, state)


class MMLSTM(_MultiMatrixCell):
    r"""The multi-matrix LSTM: each gate has its own key, which weighs K choice matrices of that gate.

    .. math::
        k_a' = \mathrm{softmax}(P_a [k_a; h; x]), \qquad z_a = W_a x + \sum_j k'_{a,j} U_{a,j} h + b_a,
        \qquad a ∈ \{i, f, g, o\}

    .. math::
        i, f, o = σ(z),\; g = \tanh(z_g),\; c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c'),
        \qquad k_{a,0} = (1/K, …, 1/K)

    The state is [k_i; k_f; k_g; k_o; c; h]. ``weight_hh`` stacks U_{a,j} gate by gate, and choice by choice within a
    gate. The pieces of P are ``weight_kk``, ``weight_kh`` and ``weight_kx``; a gate's key reads its own past only. The
    paper sums only two of the forget gate's matrices (eq. 14), which is probably an error; here all are summed.

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
    gates = 4
    carries_cell = True

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute [k'; c'; h']."""
        keys, cell, hidden = state.split((self.keys, self.hidden_size, self.hidden_size), dim=-1)
        key, z = self.choose(inputs, keys, hidden)
        i, f, g, o = z.chunk(4, dim=-1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat((key, cell, torch.sigmoid(o) * torch.tanh(cell)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        return self.run_update(LSTMUpdate(), inputs, state)
