r"""Second-order cells: the input chooses the transition of the state.

Source:
    Second-order RNNs, section 2, eq. 3-5 and section 6.2; the papers that each class names.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.errors import UsageError
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import ActivationUpdate, LSTMUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import FactoredProduct

__all__ = ["MLSTM", "MRNN", "Dyck", "TensorRNN"]


class TensorRNN(Cell):
    r"""The tensor RNN: a transition matrix of its own for every input symbol.

    .. math:: h' = \tanh(W x + U(x) h + b), \qquad U(x) = \sum_k x_k U_k

    For one-hot inputs U(x) is the matrix of the symbol; mRNN and mLSTM approximate it with shared parameters. All U_k h
    are one product with the stacked matrix, so a step costs e·d² for any x.

    Args:
        input_size: Length e of the input vector: the number of symbols for one-hot inputs.
        hidden_size: Number of units d.
        bias: Whether b exists.

    Source:
        Sutskever et al. (2011), Generating text with recurrent neural networks; Second-order RNNs, section 2.
    """

    name = "tensor_rnn"

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(input_size * hidden_size, hidden_size))
        self.register_parameter("bias", nn.Parameter(torch.empty(hidden_size)) if bias else None)
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute tanh(W x + Σ_k x_k U_k h + b)."""
        products = linear(state, self.weight_hh).unflatten(-1, (self.input_size, self.hidden_size))
        mixed = (inputs.unsqueeze(-2) @ products).squeeze(-2)
        return torch.tanh(linear(inputs, self.weight_ih, self.bias) + mixed)


class MRNN(Cell):
    r"""The multiplicative RNN: an Elman network that reads the product m in place of its state.

    .. math:: m = (W_{mx} x) ⊙ (W_{mh} h), \qquad h' = \tanh(W_{hx} x + W_{hm} m + b)

    so that the transition matrix is W_hm diag(W_mx x) W_mh. There are as many factors as units, as in Second-order
    RNNs. Both products of the input are rows of one matrix, first W_mx, then W_hx.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists.

    Source:
        Sutskever et al. (2011), Generating text with recurrent neural networks.
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
        """Run the cell over a sequence with a kernel."""
        first = self.checked_initial_state(inputs, state)
        to_m, to_h = self.weight_ih.split(self.hidden_size)
        from_input, for_m = linear(inputs, to_h, self.bias), linear(inputs, to_m)
        kernel = GatedKernel(FactoredProduct(), ActivationUpdate())
        return run_kernel(kernel, from_input, first, self.weight_mh, self.weight_hm, for_m)


class MLSTM(Cell):
    r"""The multiplicative LSTM: an LSTM whose gates read the product m in place of h.

    .. math::
        m = (W_{mx} x) ⊙ (W_{mh} h),\; i, f, o = σ(W x + U m + b),\; g = \tanh(W_g x + U_g m + b_g),\;
        c' = f ⊙ c + i ⊙ g,\; h' = o ⊙ \tanh(c')

    The state is [c; h]. All four gates share one m, which has as many factors as there are units. The products of the
    input are rows of one matrix: that of m, then those of the gates i, f, g, o.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b exists.

    Source:
        Krause et al. (2016), Multiplicative LSTM for sequence modelling, arXiv:1609.07959.
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
        from_input = linear(inputs, self.weight_ih)
        m = from_input[..., :d] * linear(state[..., d:], self.weight_mh)
        i, f, g, o = (from_input[..., d:] + linear(m, self.weight_hm, self.bias)).chunk(4, dim=-1)
        cell = torch.sigmoid(f) * state[..., :d] + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat((cell, torch.sigmoid(o) * torch.tanh(cell)), dim=-1)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence with a kernel."""
        first = self.checked_initial_state(inputs, state)
        to_m, to_gates = self.weight_ih.split((self.hidden_size, 4 * self.hidden_size))
        from_input, for_m = linear(inputs, to_gates, self.bias), linear(inputs, to_m)
        kernel = GatedKernel(FactoredProduct(), LSTMUpdate())
        return run_kernel(kernel, from_input, first, self.weight_mh, self.weight_hm, for_m)


class Dyck(Cell):
    r"""The Dyck-RNN: the state is a soft stack, and one gate pushes or pops.

    .. math:: g = σ(w^\top x), \qquad h' = (g\, S_{down} + (1 - g)\, S_{up})\, h + g\, e_{top} ⊗ x

    S_down and S_up shift the stack by one slot. A slot holds one bracket's embedding x, so a stack of m slots has m·e
    units, the top first. The state has no non-linearity, and w is the only parameter: with the gate at 0 and 1 the cell
    is the stack automaton of brackets nested up to m deep. For embeddings that are vectors the paper does not say how
    far a shift moves; here it moves a whole slot.

    Args:
        input_size: Length e of a bracket's embedding, and of a slot.
        hidden_size: m·e for a stack of m slots.

    Raises:
        UsageError: If ``hidden_size`` is not a multiple of ``input_size``.

    Source:
        Second-order RNNs, eq. 3-5 and section 6.2.
    """

    name = "dyck"
    linear = True

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        if hidden_size % input_size:
            raise UsageError(
                f"hidden_size is {hidden_size}; expected a multiple of input_size, {input_size}: whole slots"
            )
        self.weight = nn.Parameter(torch.empty(1, input_size))
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Push by g and pop by 1 - g."""
        push = torch.sigmoid(linear(inputs, self.weight))
        pushed = torch.cat((inputs, state[..., : -self.input_size]), dim=-1)
        popped = torch.cat((state[..., self.input_size :], torch.zeros_like(inputs)), dim=-1)
        return push * pushed + (1 - push) * popped
