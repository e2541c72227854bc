r"""VA-EW, vector additive with exponential weights: one matrix ages every token's vector alike.

.. math:: v_{i:t} = C^{t-i} g(x_i), \qquad c_{1:t} = \sum_i v_{i:t}, \qquad g(x) = \tanh(W x + b)

An n-gram knows its first token and its length only. As a recurrence it is c_t = C c_{t-1} + g(x_t). The table leaves
g open; it is MVMA-E's here.

Source:
    Implicit n-grams, table 1, after Emami et al. (2021).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.composition.base import GrowingEncoder
from unrolled.kernels.affine_scan import AffineKernel, Pattern
from unrolled.kernels.base import run_kernel
from unrolled.linalg.operators import Term

__all__ = ["VAEW"]


class VAEW(GrowingEncoder):
    """Sums of vectors, aged by the powers of one matrix.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b exists.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "va_ew"
    context = "sum"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.token = nn.Linear(input_size, hidden_size, bias)
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        bound = hidden_size**-0.5
        nn.init.uniform_(self.weight_hh, -bound, bound)

    def tokens(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute g(x)."""
        return (torch.tanh(self.token(inputs)),)

    def begin(self, token: tuple[Tensor, ...]) -> Tensor:
        """Give g(x_t)."""
        return token[0]

    def grow(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by C, whatever the token."""
        return linear(ngrams, self.weight_hh)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run c_t = C c_{t-1} + g(x_t)."""
        pattern = Pattern((None,), (Term(0, 0, 0),), self.output_size)
        kernel = AffineKernel(pattern, lambda x: ((torch.tanh(x),), (torch.ones_like(x),)))
        by_input = self.token(inputs)
        return run_kernel(kernel, by_input, torch.zeros_like(by_input[0]), self.weight_hh)[1:]
