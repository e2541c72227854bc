r"""Vector additive models: an n-gram knows only its first token and its length, and a context is the sum of n-grams.

.. math::
    \text{VA-W:} \quad v_{i:t} = C_{t-i}\, g(x_i), \qquad c_{1:t} = \sum_{i=t-m+1}^{t} v_{i:t} \\
    \text{VA-EW:} \quad v_{i:t} = C^{t-i} g(x_i), \qquad c_{1:t} = \sum_i v_{i:t} = C\, c_{1:t-1} + g(x_t)

VA-W (position weights) has one matrix for each distance, and no n-gram longer than m. VA-EW (exponential weights) has
one matrix for all distances. The table leaves g open; here it is that of MVMA-E, g(x) = tanh(W x + b).

Source:
    Implicit n-grams, table 1; Bengio et al. (2003), A neural probabilistic language model, for VA-W; Emami et al.
    (2021) for VA-EW.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.base import checked_size
from unrolled.composition.base import CompositionEncoder, RecursiveEncoder
from unrolled.kernels.affine_scan import AffineKernel, Pattern
from unrolled.kernels.base import run_kernel
from unrolled.linalg.structured import Term

__all__ = ["VAEWEncoder", "VAWEncoder"]


class VAWEncoder(CompositionEncoder):
    """VA-W: sums of vectors, each weighted by the matrix of its distance.

    Args:
        input_size: Number of features of each token vector (e in the equations).
        hidden_size: Number of features of each context (d).
        window: Number of tokens in a context, including the current one (m).
        bias: Whether b exists.
        batch_first: Whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: A size or the window is not a positive integer.
    """

    name = "va_w"

    def __init__(
        self, input_size: int, hidden_size: int, window: int = 5, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        window = checked_size("window", window)
        self.window = window
        self.token = nn.Linear(input_size, hidden_size, bias)
        self.weight = nn.Parameter(torch.empty(window * hidden_size, hidden_size))
        bound = (window * hidden_size) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram: the one that starts k tokens before its end is C_k g."""
        time = len(inputs)
        distances = min(self.window, time)
        weight = self.weight[: distances * self.output_size]
        weighted = linear(torch.tanh(self.token(inputs)), weight).unflatten(-1, (distances, -1))
        steps = torch.arange(time, device=inputs.device)
        distance = steps[:, None] - steps
        found = weighted[steps.expand(time, time), :, distance.clamp(0, distances - 1)]
        is_ngram = (distance >= 0) & (distance < self.window)
        return torch.where(is_ngram[..., None, None], found, torch.zeros_like(found))

    def contexts(self, inputs: Tensor) -> Tensor:
        """Sum over the window, one distance at a time: a product for each n-gram of a batch would fill the memory."""
        tokens = torch.tanh(self.token(inputs))
        weights = self.weight.unflatten(0, (self.window, -1)).unbind()[: len(inputs)]
        total = linear(tokens, weights[0])
        for k, weight in enumerate(weights[1:], start=1):
            total[k:] += linear(tokens[:-k], weight)
        return total


class VAEWEncoder(RecursiveEncoder):
    """VA-EW: sums of vectors, weighted by the powers of one matrix; ``hidden_size`` is the size of a context (d)."""

    name = "va_ew"
    context = "sum"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.token = nn.Linear(input_size, hidden_size, bias)
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        bound = hidden_size**-0.5
        nn.init.uniform_(self.weight_hh, -bound, bound)

    def token_terms(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute g(x)."""
        return (torch.tanh(self.token(inputs)),)

    def unigram(self, token: tuple[Tensor, ...]) -> Tensor:
        """Return g(x_t)."""
        return token[0]

    def extend(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by C, which does not depend on the token."""
        return linear(ngrams, self.weight_hh)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run c_t = C c_{t-1} + g(x_t)."""
        pattern = Pattern(("hidden",), (), (Term("hidden", "age"),), self.output_size)
        kernel = AffineKernel(pattern, lambda x: ((torch.tanh(x),), {"age": torch.ones_like(x)}))
        by_input = self.token(inputs)
        return run_kernel(kernel, by_input, torch.zeros_like(by_input[0]), self.weight_hh)[1:]
