r"""MVMA-L: the LSTM's expansion at zero, trained as a cell over [c; h].

With i, f, g and o as the LSTM has them at h = 0, and q = o (1 - tanh²(i g)),

.. math::
    g_c = i ⊙ g,\; B = \mathrm{diag}(f),\; D = \mathrm{diag}(g i(1-i)) U_i + \mathrm{diag}(i(1-g²)) U_g

.. math::
    g_h = o ⊙ \tanh(i ⊙ g),\; E = \mathrm{diag}(q) B,\; F = \mathrm{diag}(q) D + \mathrm{diag}(\tanh(i g)\, o(1-o)) U_o

U_f stands in no term, for c = 0; it is kept, so that an LSTM's weights fit.

Source:
    Implicit n-grams, table 2, section 5 and appendix F.
"""

from __future__ import annotations

import copy

from torch import Tensor

from unrolled.cells.affine import Affine, AffineCell
from unrolled.linalg.activations import SIGMOID, TANH, Activation
from unrolled.linalg.operators import Term

__all__ = ["MVMAL"]

I, G, O = range(3)  # noqa: E741  # the products in use, in PyTorch's order


class MVMAL(AffineCell):
    """An affine cell with an LSTM's parameters.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
    """

    name = "mvma_l"
    products = (4, 4)
    used = (0, 2, 3)  # U_i, U_g, U_o
    carry = (0, 3)
    recurrent_terms = (Term(0, I, 1), Term(0, G, 2), Term(1, I, 4), Term(1, G, 5), Term(1, O, 6))

    gate: Activation = SIGMOID
    candidate: Activation = TANH
    squash: Activation = TANH

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of c, U_i, U_g for c'; of c, U_i, U_g, U_o for h'."""
        xi, xf, xg, xo = self.with_both_biases(by_input).chunk(4, dim=-1)
        i, f, g, o = self.gate(xi), self.gate(xf), self.candidate(xg), self.gate(xo)
        offset = i * g
        squashed = self.squash(offset)
        q = o * self.squash.slope(offset, squashed)
        row = (f, g * self.gate.slope(xi, i), i * self.candidate.slope(xg, g))
        by_o = squashed * self.gate.slope(xo, o)
        return Affine((offset, o * squashed), (*row, *(q * gain for gain in row), by_o))

    def first_order(self) -> MVMAL:
        """Replace σ by 1/2 + x/4 and both tanh by x."""
        surrogate = copy.copy(self)
        surrogate.gate = self.gate.first_order()
        surrogate.candidate, surrogate.squash = self.candidate.first_order(), self.squash.first_order()
        return surrogate
