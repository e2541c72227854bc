r"""MVM-E: the longest n-gram of the Elman network's expansion at zero.

.. math:: c_{1:t} = v_{1:t} = A(x_t) ⋯ A(x_2)\, g(x_1)

Source:
    Implicit n-grams, tables 1 and 2.
"""

from __future__ import annotations

from unrolled.cells.mvma_e import MVMAE
from unrolled.composition.matrix_vector import MVM

__all__ = ["MVME"]


class MVME(MVM):
    """What the first token became under all that followed it.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether the biases exist.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "mvm_e"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(MVMAE(input_size, hidden_size, bias), batch_first)
