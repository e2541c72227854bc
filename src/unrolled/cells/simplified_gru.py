r"""The approximate GRU without what a token does to the state: the baseline that has no sequence-level features.

.. math:: g = \tfrac12 x^n - \tfrac14 x^n ⊙ x^z, \qquad A = \tfrac12 I + \tfrac14 U_n

A is one and the same matrix for all tokens, so an n-gram knows its first token and its length only. W_r, U_r and
U_z stand in no term; they are kept, so that a GRU's weights fit.

Source:
    Sequence-level features, section 5.2, "Simplified".
"""

from __future__ import annotations

from torch import Tensor

from unrolled.cells.affine import Affine
from unrolled.cells.polynomial import PolynomialCell
from unrolled.linalg.operators import Term

__all__ = ["SimplifiedGRU"]


class SimplifiedGRU(PolynomialCell):
    """A GRU of first order whose transition is constant.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    name = "simplified_gru"
    products = (3, 3)
    used = (2,)  # U_n
    carry = (0,)
    recurrent_terms = (Term(0, 0, 1),)

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of I, U_n."""
        _, z, n = self.with_both_biases(by_input).chunk(3, dim=-1)
        half, quarter = (n.new_tensor(value).expand_as(n) for value in (0.5, 0.25))
        return Affine(((0.5 - 0.25 * z) * n,), (half, quarter))
