r"""MVMA-ME: a transition richer than MVMA-E's and plainer than MVMA-G's.

.. math:: g = \tanh(W' x + b'), \qquad A = \tfrac14 \mathrm{diag}(\tanh(W x + b)) M + \tfrac12 I

The paper drops the biases. M has none: A acts on the state alone.

Source:
    Implicit n-grams, section 5, "Baselines".
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from unrolled.cells.affine import Affine, AffineCell
from unrolled.linalg.activations import TANH, Activation
from unrolled.linalg.operators import Term

__all__ = ["MVMAME"]


class MVMAME(AffineCell):
    """An affine cell whose tokens scale the rows of one matrix.

    Both products of the input are rows of one matrix, first W, then W'.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
    """

    name = "mvma_me"
    products = (2, 1)
    used = (0,)
    carry = (0,)
    recurrent_terms = (Term(0, 0, 1),)

    activation: Activation = TANH

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        super().__init__(input_size, hidden_size, False, proj_size)
        if bias:
            self.bias_ih = nn.Parameter(torch.empty(2 * hidden_size))
            self.reset_parameters()

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of I, M."""
        scale, offset = self.activation(by_input).chunk(2, dim=-1)
        return Affine((offset,), (scale.new_tensor(0.5).expand_as(scale), 0.25 * scale))

    def first_order(self) -> MVMAME:
        """Replace tanh by x."""
        surrogate = copy.copy(self)
        surrogate.activation = self.activation.first_order()
        return surrogate
