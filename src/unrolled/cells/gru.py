r"""The gated recurrent unit, in PyTorch's form: the reset gate after the product.

.. math::
    r = σ(W_r x + U_r h + b_r),\; z = σ(W_z x + U_z h + b_z),\;
    n = \tanh(W_n x + b_{in} + r ⊙ (U_n h + b_{hn})),\; h' = (1 - z) ⊙ n + z ⊙ h

with the Jacobian, m = U_n h + b_hn,

.. math::
    ∂h'/∂h = \mathrm{diag}(z) + \mathrm{diag}((h - n) z(1-z)) U_z + \mathrm{diag}((1-z)(1-n²) r) U_n
    + \mathrm{diag}((1-z)(1-n²) m\, r(1-r)) U_r

Source:
    Cho et al. (2014), arXiv:1406.1078; Chung et al. (2014), arXiv:1412.3555; Implicit n-grams, table 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.closed_form_ray import ClosedRay
from unrolled.kernels.base import run_kernel
from unrolled.kernels.elementwise import GRUUpdate
from unrolled.kernels.gated import GatedKernel
from unrolled.kernels.products import MatrixProduct
from unrolled.linalg.activations import SIGMOID, TANH, Activation
from unrolled.linalg.operators import Structured, Term

__all__ = ["GRU"]


class GRU(ClosedCell):
    """Two gates over one state.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: the length of a projected output, 0 for none.
    """

    name = "gru"
    torch_type = nn.GRU
    products = (3, 3)
    carry = (0,)
    # The candidate's two products enter by different doors: the reset gate stands before U_n only.
    input_terms = (Term(0, 0, 1), Term(0, 1, 2), Term(0, 2, 4))
    recurrent_terms = (Term(0, 0, 1), Term(0, 1, 2), Term(0, 2, 3))

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute (1 - z) ⊙ n + z ⊙ h."""
        two = 2 * self.hidden_size
        r, z = self.gate(by_input[..., :two] + by_hidden[..., :two]).chunk(2, dim=-1)
        n = self.candidate(torch.addcmul(by_input[..., two:], r, by_hidden[..., two:]))
        return (n + z * (carried - n),)

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute z and the gains of U_r, U_z, U_n, W_n."""
        d = self.hidden_size
        pre = by_input[..., : 2 * d] + by_hidden[..., : 2 * d]
        gates = self.gate(pre)
        steepness = self.gate.slope(pre, gates)
        r, z = gates.chunk(2, dim=-1)
        dr, dz = steepness.chunk(2, dim=-1)
        m = by_hidden[..., 2 * d :]
        a = by_input[..., 2 * d :] + r * m
        n = self.candidate(a)
        by_n = (1 - z) * self.candidate.slope(a, n)
        return z, by_n * m * dr, (carried - n) * dz, by_n * r, by_n

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: the products of all inputs are one, and the loop is a kernel."""
        if self.gate is not SIGMOID or self.candidate is not TANH:  # linearised
            return super().unroll(inputs, state)
        first, bias, of_candidate = self.checked_start(inputs, state), None, None
        if self.bias_ih is not None and self.bias_hh is not None:
            d = self.hidden_size
            of_gates, of_candidate = self.bias_hh.split((2 * d, d))
            bias = self.bias_ih + pad(of_gates, (0, d))
        kernel = GatedKernel(MatrixProduct(), GRUUpdate())
        return run_kernel(kernel, linear(inputs, self.weight_ih, bias), first, of_candidate, self.weight_hh)

    def gates(self, ray: ClosedRay) -> Structured:
        """Keep z: h' = z ⊙ h + (1 - z) ⊙ n."""
        x, h, _ = ray.point(1.0)
        d = self.hidden_size
        return ray.diagonal((self.gate(x[..., d : 2 * d] + h[..., d : 2 * d]),))

    def first_order(self) -> GRU:
        """Replace σ by 1/2 + x/4 and tanh by x; as in the paper, x^n holds both biases of the candidate.

        Source:
            Sequence-level features, eq. 10.
        """
        weights: dict[str, Tensor | None] = {**dict(self.named_parameters())}
        if self.bias_ih is not None and self.bias_hh is not None:
            d = self.hidden_size
            none = torch.zeros_like(self.bias_hh[2 * d :])
            weights["bias_ih"] = self.bias_ih + torch.cat((none, none, self.bias_hh[2 * d :]))
            weights["bias_hh"] = torch.cat((self.bias_hh[: 2 * d], none))
        surrogate = GRU.from_weights(weights)
        surrogate.gate, surrogate.candidate = self.gate.first_order(), self.candidate.first_order()
        return surrogate
