r"""The GRU's activation expansion, run as a recurrence of its own.

With σ(x) ≈ 1/2 + x/4 and tanh(x) ≈ x, and no power of the state above the first,

.. math::
    g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad
    A = \tfrac12 I + \tfrac14 U_n + \tfrac14 \mathrm{diag}(x^z) - \tfrac14 \mathrm{diag}(x^n) U_z
    + \tfrac18 \mathrm{diag}(x^r - x^z - \tfrac12 x^z ⊙ x^r) U_n

where x^a = W_a x with both biases of gate a. U_r stands in no term; it is kept, so that a GRU's weights fit.

Source:
    Sequence-level features, eq. 11, "Approx".
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["ApproxGRU"]


class ApproxGRU(PolynomialCell):
    """A GRU of first order.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "approx_gru"
    products = (3, 3)
    used = (1, 2)  # U_z, U_n
    carry = (0,)
    recurrent_terms = (Term(0, 0, 1), Term(0, 1, 2))

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of I, U_z, U_n."""
        r, z, n = self.with_both_biases(by_input).chunk(3, dim=-1)
        kept, passed = 0.5 + 0.25 * z, 0.5 + 0.25 * r
        return Affine(((1 - kept) * n,), (kept, -0.25 * n, (1 - kept) * passed))
