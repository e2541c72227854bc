r"""The LSTM's activation expansion, run as a recurrence of its own over [c; h].

With σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x, and no power of the state above the first,

.. math::
    g_c = \tfrac14 (x^i + 2) ⊙ x^g,\; B = \tfrac14 \mathrm{diag}(x^f + 2),\;
    D = \tfrac14 \mathrm{diag}(x^i + 2) U_g + \tfrac14 \mathrm{diag}(x^g) U_i

.. math::
    g_h = \tfrac14 (x^o + 2) ⊙ g_c,\; E = \tfrac14 \mathrm{diag}(x^o + 2) B,\;
    F = \tfrac14 \mathrm{diag}(x^o + 2) D + \tfrac14 \mathrm{diag}(g_c) U_o

where x^a = W_a x with both biases of gate a; the paper's x^c is x^g here. U_f stands in no term; it is kept, so
that an LSTM's weights fit.

Source:
    Sequence-level features, eq. 16, "Approx".
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["ApproxLSTM"]

I, G, O = range(3)  # noqa: E741  # the products in use, in PyTorch's order


class ApproxLSTM(PolynomialCell):
    """An LSTM of first order.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "approx_lstm"
    products = (4, 4)
    used = (0, 2, 3)  # U_i, U_g, U_o
    carry = (0, 3)
    recurrent_terms = (Term(0, I, 1), Term(0, G, 2), Term(1, I, 4), Term(1, G, 5), Term(1, O, 6))

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of c, U_i, U_g for c'; of c, U_i, U_g, U_o for h'."""
        i, f, g, o = self.with_both_biases(by_input).chunk(4, dim=-1)
        entered, kept, shown = 0.5 + 0.25 * i, 0.5 + 0.25 * f, 0.5 + 0.25 * o
        by_i, offset = 0.25 * g, entered * g
        return Affine(
            (offset, shown * offset),
            (kept, by_i, entered, shown * kept, shown * by_i, shown * entered, 0.25 * offset),
        )
