r"""MVMA-E: the Elman network's expansion at zero, trained as a cell.

.. math:: g = \tanh(W x + b), \qquad A = \mathrm{diag}(1 - g²)\, U

where b holds both biases.

Source:
    Implicit n-grams, table 2 and section 5.
"""

from __future__ import annotations

import copy

from torch import Tensor

from unrolled.cells.affine import Affine, AffineCell
from unrolled.linalg.activations import TANH, Activation
from unrolled.linalg.operators import Term

__all__ = ["MVMAE"]


class MVMAE(AffineCell):
    """An affine cell with an Elman network's parameters.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; there is no projection.
    """

    name = "mvma_e"
    products = (1, 1)
    used = (0,)
    carry = (None,)
    recurrent_terms = (Term(0, 0, 0),)

    activation: Activation = TANH

    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonal of U."""
        x = self.with_both_biases(by_input)
        g = self.activation(x)
        return Affine((g,), (self.activation.slope(x, g),))

    def first_order(self) -> MVMAE:
        """Replace tanh by x."""
        surrogate = copy.copy(self)
        surrogate.activation = self.activation.first_order()
        return surrogate
