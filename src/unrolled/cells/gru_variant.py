r"""The GRU variant: the approximate GRU's g with a transition of its authors' own making.

.. math::
    g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad
    A = \tfrac14 U_n + \tfrac7{10} I - \tfrac14 \mathrm{diag}(x^n) U_z + \tfrac14 \mathrm{diag}(x^z) U_r
    + \tfrac18 \mathrm{diag}(x^r - x^z - x^r ⊙ x^z) U_n

where x^a = W_a x with both biases of gate a.

Source:
    Sequence-level features, eq. 21.
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["GRUVariant"]

KEPT = 0.7


class GRUVariant(PolynomialCell):
    """An affine cell with a GRU's parameters, all of them in use.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "gru_variant"
    products = (3, 3)
    used = (0, 1, 2)  # U_r, U_z, U_n
    carry = (0,)
    recurrent_terms = (Term(0, 0, 1), Term(0, 1, 2), Term(0, 2, 3))

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of I, U_r, U_z, U_n."""
        r, z, n = self.with_both_biases(by_input).chunk(3, dim=-1)
        kept = n.new_tensor(KEPT).expand_as(n)
        by_n = 0.25 + 0.125 * (r - z - r * z)
        return Affine(((0.5 - 0.25 * z) * n,), (kept, 0.25 * z, -0.25 * n, by_n))
