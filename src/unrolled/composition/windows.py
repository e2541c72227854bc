r"""Baselines that read windows of n tokens, x = [x_{t-n+1}; …; x_t], zero before the first token.

.. math::
    \text{CNN:} \quad p_t = \tanh(W x + b), \qquad \text{the vector of a sequence: } \max_t p_t \\
    \text{window:} \quad c_t = \tanh(W_1 x + b_1), \qquad \text{with direct connections: } [\tanh(W_1 x + b_1);\; x]

The CNN's maximum includes the windows that reach beyond the last token; its contexts are the windows that end at a
token. Under a softmax layer the window model with direct connections is Bengio's language model,
softmax(W₂ tanh(W₁ x + b₁) + W₃ x + b₃), with [W₂ W₃] the matrix of the layer. Without them, which is how Bengio
obtained the best results on Brown, c_t is the hidden layer.

Source:
    Yin et al. (2017), Comparative study of CNN and RNN for natural language processing, arXiv:1702.01923, section 3.1.
    Bengio et al. (2003), A neural probabilistic language model, section 2 and table 1.
    https://www.jmlr.org/papers/v3/bengio03a.html
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from unrolled.cells.base import checked_size
from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder
from unrolled.errors import UsageError

__all__ = ["CNNEncoder", "WindowEncoder"]


class CNNEncoder(Encoder):
    """One one-dimensional convolution and the maximum of each filter.

    Args:
        input_size: Number of features of each token vector (e in the equations).
        hidden_size: Number of filters (d).
        width: Number of tokens that a filter sees (n).
        bias: Whether b exists.
        batch_first: Whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: A size or the width is not a positive integer.
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


class WindowEncoder(Encoder):
    """One hidden layer over windows of tokens.

    Args:
        input_size: Number of features of each token vector (e in the equations).
        hidden_size: Number of features of each context (d).
        window: Number of tokens in a context, including the current one (n).
        direct: Whether to append the token vectors to the context; they take n·e of its d features.
        bias: Whether b_1 exists.
        batch_first: Whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: The window is not a positive integer, or the token vectors leave no feature for the hidden layer.
    """

    name = "window"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        window: int = 5,
        direct: bool = False,
        bias: bool = True,
        batch_first: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        window = checked_size("window", window)
        words = window * input_size
        if direct and hidden_size <= words:
            raise UsageError(
                f"hidden_size is {hidden_size}; expected more than {words}, because with direct connections "
                f"the {window} token vectors of size {input_size} are part of a context"
            )
        self.window = window
        self.direct = direct
        self.hidden = nn.Linear(words, hidden_size - words if direct else hidden_size, bias)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts; the vector of a sequence is the context at its end."""
        padded = pad(inputs, (0, 0, 0, 0, self.window - 1, 0))
        words = padded.unfold(0, self.window, 1).transpose(-1, -2).flatten(-2)
        contexts = torch.tanh(self.hidden(words))
        if self.direct:
            contexts = torch.cat((contexts, words), dim=-1)
        return contexts, layout.last(contexts)
