r"""The Elman network with multiplicative integration.

.. math:: h' = \tanh(α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b)

Source:
    Wu et al. (2016), arXiv:1606.06630.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from unrolled.cells.closed_form_ray import ClosedRay
from unrolled.cells.multiplicative_integration import IntegratedCell
from unrolled.kernels.elementwise import ActivationUpdate
from unrolled.linalg.activations import TANH, Activation, mean_slope
from unrolled.linalg.operators import Structured, Term

__all__ = ["MIRNN"]


class MIRNN(IntegratedCell):
    """One activation of the integrated products.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "mi_rnn"
    products = (1, 1)
    carry = (None,)
    recurrent_terms = (Term(0, 0, 0),)
    input_terms = (Term(0, 0, 1),)

    activation: Activation = TANH

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ(z)."""
        return (self.activation(self.integrate(by_input, by_hidden)),)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ'(z) times the gain of U h, and of W x."""
        z = self.integrate(by_input, by_hidden)
        slope = self.activation.slope(z, self.activation(z))
        return slope * self.hidden_gain(by_input), slope * self.input_gain(by_hidden)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence by a kernel."""
        if self.activation is not TANH:  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(ActivationUpdate(), inputs, state)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep the input's hold on U h, and the ratio (φ(z) - φ(0))/z that the activation took."""
        x, h, _ = ray.point(1.0)
        z = self.integrate(x, h)
        gain = mean_slope(self.activation, torch.zeros_like(z), z)
        return ray.structured((gain * self.hidden_gain(x), gain * self.beta_input))

    def first_order(self) -> MIRNN:
        """Replace φ by φ(0) + φ'(0)·x; the product of input and state stays."""
        surrogate = copy.copy(self)
        surrogate.activation = self.activation.first_order()
        return surrogate
