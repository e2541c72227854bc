r"""Multiplicative integration: the sum of the two products gains their element-wise product.

.. math:: W x + U h + b \quad→\quad z = α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b

so that ∂z/∂(U h) = α ⊙ (W x) + β_1 and ∂z/∂(W x) = α ⊙ (U h) + β_2: the products are shared and the rest is
element-wise, which is all that a closed cell asks for.

Source:
    Wu et al. (2016), On multiplicative integration with recurrent neural networks, arXiv:1606.06630.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.closed_form import ClosedCell
from unrolled.kernels.base import run_kernel
from unrolled.kernels.gated import ElementwiseUpdate, GatedKernel
from unrolled.kernels.multiplicative_gain import gain_and_offset
from unrolled.kernels.products import ScaledProduct

__all__ = ["IntegratedCell"]

GAINS = ("alpha", "beta_hidden", "beta_input")


class IntegratedCell(ClosedCell):
    """A closed cell whose pre-activations are integrated multiplicatively.

    α, β_1 and β_2 begin at one, so that the cell begins as its ordinary self plus the product; the paper
    chooses where they begin for each task.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists; it is one vector, for W x and U h must come bare to their product.
    """

    bias: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, bias=False)
        size = self.weight_ih.shape[0]
        self.alpha = nn.Parameter(torch.empty(size))
        self.beta_hidden = nn.Parameter(torch.empty(size))
        self.beta_input = nn.Parameter(torch.empty(size))
        self.register_parameter("bias", nn.Parameter(torch.empty(size)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias from U(-1/√d, 1/√d); set α, β_1 and β_2 to one."""
        super().reset_parameters()
        for name, parameter in self.named_parameters():
            if name in GAINS:
                nn.init.ones_(parameter)

    def hidden_gain(self, by_input: Tensor) -> Tensor:
        """Compute ∂z/∂(U h) = α ⊙ (W x) + β_1.

        Args:
            by_input: W x, shape (…, K·d).

        Returns:
            The same shape.
        """
        return self.alpha * by_input + self.beta_hidden

    def input_gain(self, by_hidden: Tensor) -> Tensor:
        """Compute ∂z/∂(W x) = α ⊙ (U h) + β_2.

        Args:
            by_hidden: U h, shape (…, K·d).

        Returns:
            The same shape.
        """
        return self.alpha * by_hidden + self.beta_input

    def integrate(self, by_input: Tensor, by_hidden: Tensor) -> Tensor:
        """Compute z.

        Args:
            by_input: W x, shape (…, K·d).
            by_hidden: U h, shape (…, K·d).

        Returns:
            The same shape.
        """
        z = self.hidden_gain(by_input) * by_hidden + self.beta_input * by_input
        return z if self.bias is None else z + self.bias

    def run_gates(self, gates: ElementwiseUpdate, inputs: Tensor, state: Tensor | None, *own: Tensor | None) -> Tensor:
        """Run over a sequence by a kernel: what an input does to U h, a gain and an offset, is known before the loop.

        Args:
            gates: the point-wise part.
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state); zeros when left out.
            *own: weights of the gates.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state).
        """
        first, by_input = self.checked_start(inputs, state), linear(inputs, self.weight_ih)
        gain, offset = gain_and_offset(by_input, self.alpha, self.beta_hidden, self.beta_input, self.bias)
        return run_kernel(GatedKernel(ScaledProduct(), gates), offset, first, *own, self.weight_hh, gain)
