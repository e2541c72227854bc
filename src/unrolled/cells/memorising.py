r"""The memorising RNN: a linear network whose weights, set by hand, keep the last N inputs unchanged.

.. math::
    h' = W x + U h, \qquad
    W = \begin{pmatrix} I \\ 0 \end{pmatrix}, \qquad U = \begin{pmatrix} 0 & 0 \\ I & 0 \end{pmatrix}

so that h' = [x; h without its last e entries]. It shows that a recurrent network can represent long-distance
dependencies, not that training would find such weights. The lecture rotates h by e positions; here an input that has
been kept for N steps is dropped and not added to the next input.

Source:
    CS577, lecture 5, long-term dependencies.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import Cell
from unrolled.errors import UsageError

__all__ = ["Memorising"]


class Memorising(Cell):
    """A shift register written as weights; they can be trained further.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: N·e, to keep N inputs.

    Raises:
        UsageError: If ``hidden_size`` is not a multiple of ``input_size``.
    """

    name = "memorising"
    linear = True

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        if hidden_size % input_size:
            raise UsageError(
                f"hidden_size is {hidden_size}; expected a multiple of input_size, {input_size}: whole inputs"
            )
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights that write x into the first slot and move every slot into the next."""
        e, d = self.input_size, self.hidden_size
        with torch.no_grad():
            self.weight_ih.copy_(torch.eye(d, e))
            self.weight_hh.copy_(torch.diag(torch.ones(d - e), -e))

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute W x + U h."""
        return linear(inputs, self.weight_ih) + linear(state, self.weight_hh)

    def recall(self, state: Tensor) -> Tensor:
        """Return the last N inputs, the latest first, shape (…, N, e), from a state, shape (…, N·e)."""
        return state.unflatten(-1, (-1, self.input_size))
