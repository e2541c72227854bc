r"""The tensor RNN: a transition matrix of its own for every input symbol.

.. math:: h' = \tanh(W x + U(x) h + b), \qquad U(x) = \sum_k x_k U_k

For one-hot inputs U(x) is U^{(x)}, the matrix of the symbol. It is what mRNN and mLSTM approximate with
shared parameters. All U_k h are one product with the stacked matrix, so a step costs e·d² whatever x is.

Source:
    Sutskever et al. (2011), Generating text with recurrent neural networks; Second-order RNNs,
    section 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell

__all__ = ["TensorRNN"]


class TensorRNN(Cell):
    """One activation of a map that is bilinear in input and state.

    Args:
        input_size: e, the number of symbols if inputs are one-hot.
        hidden_size: d.
        bias: whether b exists.
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
