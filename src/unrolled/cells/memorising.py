r"""The memorising RNN: a linear network, its weights set by hand, that keeps the last N inputs as they were.

.. math::
    h' = W x + U h, \qquad
    W = \begin{pmatrix} I \\ 0 \end{pmatrix}, \qquad U = \begin{pmatrix} 0 & 0 \\ I & 0 \end{pmatrix}

so that h' = [x; h without its last e entries]. It proves that a recurrent network can hold long-distance
dependencies; whether training would find it is another question. The lecture rotates h by e positions;
here what has been kept for N steps falls out instead of being added to the next input.

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
    """A shift register written as weights, which may be trained further like any others.

    Args:
        input_size: e.
        hidden_size: N·e, to keep N inputs.

    Raises:
        UsageError: when whole inputs do not fill the state.
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
        """Write x into the first slot and move every slot into the next."""
        e, d = self.input_size, self.hidden_size
        with torch.no_grad():
            self.weight_ih.copy_(torch.eye(d, e))
            self.weight_hh.copy_(torch.diag(torch.ones(d - e), -e))

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute W x + U h."""
        return linear(inputs, self.weight_ih) + linear(state, self.weight_hh)

    def recall(self, state: Tensor) -> Tensor:
        """Read the inputs back out of a state.

        Args:
            state: shape (…, N·e).

        Returns:
            The last N inputs, the latest first, shape (…, N, e); zeros before the first.
        """
        return state.unflatten(-1, (-1, self.input_size))
