r"""VM, vector multiplicative: an n-gram is the element-wise product of its tokens' vectors.

.. math:: v_{i:t} = g(x_i) ⊙ ⋯ ⊙ g(x_t), \qquad c_{1:t} = v_{1:t}, \qquad g(x) = \tanh(W x + b)

The product commutes: the order of the tokens is lost. The table leaves g open; it is MVMA-E's here.

Source:
    Implicit n-grams, table 1; Mitchell and Lapata (2008), Vector-based models of semantic composition.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.composition.base import GrowingEncoder

__all__ = ["VM"]


class VM(GrowingEncoder):
    """Products of vectors.

    Args:
        input_size: e.
        hidden_size: d, the length of g(x).
        bias: whether b exists.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "vm"
    context = "longest"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.token = nn.Linear(input_size, hidden_size, bias)

    def tokens(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute g(x)."""
        return (torch.tanh(self.token(inputs)),)

    def begin(self, token: tuple[Tensor, ...]) -> Tensor:
        """Give g(x_t)."""
        return token[0]

    def grow(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by g(x_t)."""
        return ngrams * token[0]
