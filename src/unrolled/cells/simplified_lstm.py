r"""The approximate LSTM without what a token does to the state: the baseline that has no sequence-level features.

.. math::
    g_c = \tfrac14 (x^i + 2) ⊙ x^g,\; g_h = \tfrac14 (x^o + 2) ⊙ g_c, \qquad
    B = \tfrac12 I,\; D = \tfrac12 U_g,\; E = \tfrac14 I,\; F = \tfrac14 U_g

A is one and the same matrix for all tokens, so an n-gram knows its first token and its length only. W_f, U_i, U_f
and U_o stand in no term; they are kept, so that an LSTM's weights fit.

Source:
    Sequence-level features, section 5.2, "Simplified".
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["SimplifiedLSTM"]


class SimplifiedLSTM(PolynomialCell):
    """An LSTM of first order whose transition is constant.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "simplified_lstm"
    products = (4, 4)
    used = (2,)  # U_g
    carry = (0, 2)
    recurrent_terms = (Term(0, 0, 1), Term(1, 0, 3))

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of c, U_g for c'; of c, U_g for h'."""
        i, _, g, o = self.with_both_biases(by_input).chunk(4, dim=-1)
        offset = (0.5 + 0.25 * i) * g
        half, quarter = (g.new_tensor(value).expand_as(g) for value in (0.5, 0.25))
        return Affine((offset, (0.5 + 0.25 * o) * offset), (half, half, quarter, quarter))
