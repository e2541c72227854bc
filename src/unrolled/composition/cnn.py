r"""A one-dimensional convolution over windows of tokens, and the largest value of each feature.

.. math:: p_t = \tanh(W [x_{t-n+1}; …; x_t] + b), \qquad \text{a sequence's vector: } \max_t p_t

Tokens before the first and behind the last are zero. The windows that reach beyond the end take part in the maximum;
the contexts are those of the windows that end at a token.

Source:
    Yin et al. (2017), Comparative study of CNN and RNN for natural language processing, arXiv:1702.01923,
    section 3.1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder
from unrolled.sizes import checked_size

__all__ = ["CNN"]


class CNN(Encoder):
    """One convolution.

    Args:
        input_size: e.
        hidden_size: d, how many filters.
        width: n, how many tokens a filter sees.
        bias: whether b exists.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when the width is not a positive integer.
    """

    name = "cnn"

    def __init__(
        self, input_size: int, hidden_size: int, width: int = 3, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.width = checked_size("width", width)
        self.filters = nn.Conv1d(input_size, hidden_size, self.width, bias=bias)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the windows that end at a token, and the maximum over all windows of a sequence."""
        beyond = self.width - 1
        padded = pad(inputs.permute(1, 2, 0), (beyond, beyond))
        windows = torch.tanh(self.filters(padded)).permute(2, 0, 1)
        steps = torch.arange(len(windows), device=inputs.device)[:, None]
        is_window = steps < layout.lengths + beyond
        largest = windows.masked_fill(~is_window[..., None], -torch.inf).amax(dim=0)
        return windows[: len(inputs)], largest
