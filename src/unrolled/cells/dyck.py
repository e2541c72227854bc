r"""The Dyck-RNN: a state that is a stack, and one gate that pushes or pops.

.. math:: g = σ(w^\top x), \qquad h' = (g\, S_{down} + (1 - g)\, S_{up})\, h + g\, e_{top} ⊗ x

S_down and S_up shift the stack by one slot. A slot holds one bracket's embedding x, so a stack of m slots
has m·e units, the top first. There is no non-linearity in the state, and w is all there is to learn: with
the gate at 0 and 1 the cell is the stack automaton of brackets nested up to m deep. For embeddings that
are vectors (section 6.2) the paper does not say how far a shift moves; here it is a whole slot.

Source:
    Second-order RNNs, eq. 3-5 and section 6.2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.errors import UsageError

__all__ = ["Dyck"]


class Dyck(Cell):
    """A soft stack.

    Args:
        input_size: e, the size of a bracket's embedding, and of a slot.
        hidden_size: m·e for a stack of m slots.

    Raises:
        UsageError: when the slots do not fill the state.
    """

    name = "dyck"
    linear = True

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        if hidden_size % input_size:
            raise UsageError(
                f"hidden_size is {hidden_size}; expected a multiple of input_size, {input_size}: whole slots"
            )
        self.weight = nn.Parameter(torch.empty(1, input_size))
        self.reset_parameters()

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Push by g and pop by 1 - g."""
        push = torch.sigmoid(linear(inputs, self.weight))
        pushed = torch.cat((inputs, state[..., : -self.input_size]), dim=-1)
        popped = torch.cat((state[..., self.input_size :], torch.zeros_like(inputs)), dim=-1)
        return push * pushed + (1 - push) * popped
