r"""MVMA-G: the GRU's expansion at zero, trained as a cell.

With r, z and n as the GRU has them at h = 0, so that n = tanh(W_n x + b_in + r ⊙ b_hn),

.. math::
    g = (1 - z) ⊙ n, \qquad A = \mathrm{diag}(z) - \mathrm{diag}(n z(1-z)) U_z
    + \mathrm{diag}((1-z)(1-n²) r) U_n + \mathrm{diag}((1-z)(1-n²) b_{hn} r(1-r)) U_r

The paper drops the biases, and with them the last term.

Source:
    Implicit n-grams, table 2 and section 5.
"""

from __future__ import annotations

import copy

from torch import Tensor

from unrolled.cells.affine import Affine, AffineCell
from unrolled.linalg.activations import SIGMOID, TANH, Activation
from unrolled.linalg.operators import Term

__all__ = ["MVMAG"]


class MVMAG(AffineCell):
    """An affine cell with a GRU's parameters.

    Without biases U_r stands in no term that counts: its diagonal is zero.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
    """

    name = "mvma_g"
    products = (3, 3)
    used = (0, 1, 2)  # U_r, U_z, U_n
    carry = (0,)
    recurrent_terms = (Term(0, 0, 1), Term(0, 1, 2), Term(0, 2, 3))

    gate: Activation = SIGMOID
    candidate: Activation = TANH

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of I, U_r, U_z, U_n."""
        d = self.hidden_size
        gates, a = by_input.split((2 * d, d), dim=-1)
        m = by_input.new_zeros(d)
        if self.bias_hh is not None:
            bias, m = self.bias_hh.split((2 * d, d))
            gates = gates + bias
        opened = self.gate(gates)
        r, z = opened.chunk(2, dim=-1)
        dr, dz = self.gate.slope(gates, opened).chunk(2, dim=-1)
        a = a + r * m
        n = self.candidate(a)
        by_n = (1 - z) * self.candidate.slope(a, n)
        return Affine(((1 - z) * n,), (z, by_n * m * dr, -n * dz, by_n * r))

    def first_order(self) -> MVMAG:
        """Replace σ by 1/2 + x/4 and tanh by x."""
        surrogate = copy.copy(self)
        surrogate.gate, surrogate.candidate = self.gate.first_order(), self.candidate.first_order()
        return surrogate
