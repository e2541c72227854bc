r"""MVM-G: the longest n-gram of the GRU's expansion at zero.

.. math:: c_{1:t} = v_{1:t} = A(x_t) ⋯ A(x_2)\, g(x_1)

Source:
    Implicit n-grams, tables 1 and 2.
"""

from __future__ import annotations

from unrolled.cells.mvma_g import MVMAG
from unrolled.composition.matrix_vector import MVM

__all__ = ["MVMG"]


class MVMG(MVM):
    """What the first token became under all that followed it.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether the biases exist.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "mvm_g"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(MVMAG(input_size, hidden_size, bias), batch_first)
