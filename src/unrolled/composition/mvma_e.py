r"""MVMA-E: the sum of all n-grams of the Elman network's expansion at zero.

.. math:: c_{1:t} = \sum_i v_{i:t}, \qquad v_{i:t} = A(x_t) ⋯ A(x_{i+1})\, g(x_i)

As a recurrence it is the cell of the same name.

Source:
    Implicit n-grams, tables 1 and 2, and section 5.
"""

from __future__ import annotations

from unrolled.cells import mvma_e
from unrolled.composition.matrix_vector import MVMA

__all__ = ["MVMAE"]


class MVMAE(MVMA):
    """The affine cell of the same name, with its n-grams in sight.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether the biases exist.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "mvma_e"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(mvma_e.MVMAE(input_size, hidden_size, bias), batch_first)
