r"""The GRU with multiplicative integration, in PyTorch's form.

.. math::
    r, z = σ(α ⊙ (W x) ⊙ (U h) + β_1 ⊙ (U h) + β_2 ⊙ (W x) + b),\;
    u = r ⊙ (U_n h),\; n = \tanh(α_n ⊙ (W_n x) ⊙ u + β_{1n} ⊙ u + β_{2n} ⊙ (W_n x) + b_n),\;
    h' = (1 - z) ⊙ n + z ⊙ h

As in torch.nn.GRU the reset gate stands after the product and z is what is kept; the GRU as first
published has the reset gate before it.

Source:
    Wu et al. (2016), arXiv:1606.06630.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from unrolled.cells.closed_form_ray import ClosedRay
from unrolled.cells.multiplicative_integration import IntegratedCell
from unrolled.kernels.elementwise import GRUUpdate
from unrolled.linalg.activations import SIGMOID, TANH, Activation
from unrolled.linalg.operators import Structured, Term

__all__ = ["MIGRU"]

R, Z, N = range(3)  # the products, in PyTorch's order


class MIGRU(IntegratedCell):
    """Two gates over one state, integrated multiplicatively.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
    """

    name = "mi_gru"
    products = (3, 3)
    carry = (0,)
    recurrent_terms = (Term(0, R, 1), Term(0, Z, 2), Term(0, N, 3))
    input_terms = (Term(0, R, 4), Term(0, Z, 5), Term(0, N, 6))

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def _reset(self, by_input: Tensor, by_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute what the reset gate leaves of U h, the pre-activations, and both gates."""
        d = self.hidden_size
        gates = self.gate(self.integrate(by_input, by_hidden)[..., : 2 * d])
        passed = torch.cat((by_hidden[..., : 2 * d], gates[..., :d] * by_hidden[..., 2 * d :]), dim=-1)
        return passed, self.integrate(by_input, passed), gates

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute (1 - z) ⊙ n + z ⊙ h."""
        d = self.hidden_size
        _, pre, gates = self._reset(by_input, by_hidden)
        n = self.candidate(pre[..., 2 * d :])
        return (n + gates[..., d:] * (carried - n),)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute z and the gains of U_r, U_z, U_n, W_r, W_z, W_n."""
        d = self.hidden_size
        passed, pre, gates = self._reset(by_input, by_hidden)
        r, z = gates.chunk(2, dim=-1)
        n = self.candidate(pre[..., 2 * d :])
        dr, dz = self.gate.slope(pre[..., : 2 * d], gates).chunk(2, dim=-1)
        hr, hz, hn = self.hidden_gain(by_input).chunk(3, dim=-1)
        xr, xz, xn = self.input_gain(passed).chunk(3, dim=-1)
        by_n = (1 - z) * self.candidate.slope(pre[..., 2 * d :], n)
        by_r = by_n * hn * by_hidden[..., 2 * d :] * dr
        by_z = (carried - n) * dz
        return z, by_r * hr, by_z * hz, by_n * hn * r, by_r * xr, by_z * xz, by_n * xn

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence by a kernel."""
        if self.gate is not SIGMOID or self.candidate is not TANH:  # linearised
            return super().unroll(inputs, state)
        return self.run_gates(GRUUpdate(), inputs, state, None)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep z: h' = z ⊙ h + (1 - z) ⊙ n."""
        x, h, _ = ray.point(1.0)
        return ray.diagonal((self._reset(x, h)[2][..., self.hidden_size :],))

    def first_order(self) -> MIGRU:
        """Replace σ by 1/2 + x/4 and tanh by x; the product of input and state stays."""
        surrogate = copy.copy(self)
        surrogate.gate, surrogate.candidate = self.gate.first_order(), self.candidate.first_order()
        return surrogate
