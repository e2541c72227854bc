r"""VA-W, vector additive with position weights: a window in which every distance has a matrix of its own.

.. math:: v_{i:t} = C_{t-i}\, g(x_i), \qquad c_{1:t} = \sum_{i=t-m+1}^{t} v_{i:t}, \qquad g(x) = \tanh(W x + b)

An n-gram knows its first token and its length only, and none is longer than m. The table leaves g open; it is
MVMA-E's here.

Source:
    Implicit n-grams, table 1; Bengio et al. (2003), A neural probabilistic language model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.composition.base import CompositionEncoder
from unrolled.sizes import checked_size

__all__ = ["VAW"]


class VAW(CompositionEncoder):
    """Sums of vectors, weighed by their distance.

    Args:
        input_size: e.
        hidden_size: d.
        window: m, how many tokens a context reaches back, itself among them.
        bias: whether b exists.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when the window is not a positive integer.
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

    def _at_distances(self, inputs: Tensor) -> Tensor:
        """Compute C_k g(x_i) for every distance k, shape (time, batch, window, size): one product."""
        return linear(torch.tanh(self.token(inputs)), self.weight).unflatten(-1, (self.window, -1))

    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram: what stands at distance k of its end is C_k g."""
        far, time = self._at_distances(inputs), len(inputs)
        steps = torch.arange(time, device=inputs.device)
        distance = steps[:, None] - steps
        found = far[steps.expand(time, time), :, distance.clamp(0, self.window - 1)]
        is_ngram = (distance >= 0) & (distance < self.window)
        return torch.where(is_ngram[..., None, None], found, torch.zeros_like(found))

    def contexts(self, inputs: Tensor) -> Tensor:
        """Add up the window, distance by distance."""
        far = self._at_distances(inputs)
        total = far[:, :, 0]
        for k in range(1, min(self.window, len(inputs))):
            total = total + torch.cat((torch.zeros_like(far[:k, :, k]), far[:-k, :, k]))
        return total
