r"""The LSTM variant: the approximate LSTM's g with a transition of its authors' own making, over [c; h].

.. math::
    g_c = \tfrac14 x^i ⊙ x^g + \tfrac12 x^g,\;
    B = \tfrac14 \mathrm{diag}(x^f + 2.4 + 2.4\, x^i + 0.4\, x^g),\;
    D = \tfrac14 \mathrm{diag}(x^i + 2) U_g + \tfrac14 \mathrm{diag}(x^g) U_i + \tfrac1{10} \mathrm{diag}(x^f) U_f

.. math::
    g_h = \tfrac14 x^o ⊙ g_c + \tfrac12 g_c,\; E = \tfrac14 \mathrm{diag}(x^o) B + \tfrac12 B,\;
    F = \tfrac14 \mathrm{diag}(x^o + 2) D + \tfrac14 \mathrm{diag}(g_c + \tfrac1{10} x^f + \tfrac1{10} x^o) U_o

where x^a = W_a x with both biases of gate a; the paper's x^c is x^g here. In B the paper writes an x^g that it never
defines: read here as the cell gate too, which is what every other x^g in the literature is.

Source:
    Sequence-level features, eq. 22.
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["LSTMVariant"]

I, F, G, O = range(4)  # noqa: E741  # the products, in PyTorch's order


class LSTMVariant(PolynomialCell):
    """An affine cell with an LSTM's parameters, all of them in use.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "lstm_variant"
    products = (4, 4)
    used = (I, F, G, O)
    carry = (0, 4)
    recurrent_terms = (
        Term(0, I, 1),
        Term(0, F, 2),
        Term(0, G, 3),
        Term(1, I, 5),
        Term(1, F, 6),
        Term(1, G, 7),
        Term(1, O, 8),
    )

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of c, U_i, U_f, U_g for c'; of c, U_i, U_f, U_g, U_o for h'."""
        i, f, g, o = self.with_both_biases(by_input).chunk(4, dim=-1)
        entered, shown = 0.5 + 0.25 * i, 0.5 + 0.25 * o
        offset = entered * g
        row = (0.6 + 0.6 * i + 0.25 * f + 0.1 * g, 0.25 * g, 0.1 * f, entered)
        by_o = 0.25 * (offset + 0.1 * f + 0.1 * o)
        return Affine((offset, shown * offset), (*row, *(shown * gain for gain in row), by_o))
