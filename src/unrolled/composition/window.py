r"""The window model: a hidden layer over the last n words, and the words themselves beside it.

.. math:: x = [x_{t-n+1}; …; x_t], \qquad c_t = [\tanh(W_1 x + b_1);\; x]

What is before the first token is zero. Under a softmax layer the context gives Bengio's language model,
softmax(W₂ tanh(W₁ x + b₁) + W₃ x + b₃), with W₂ and W₃ side by side in the layer's matrix. The words beside the hidden
layer are his direct connections; without them, which is how he got his best results on Brown, c_t is the hidden layer.

Source:
    Bengio et al. (2003), A neural probabilistic language model, section 2 and table 1.
    https://www.jmlr.org/papers/v3/bengio03a.html
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder
from unrolled.errors import UsageError
from unrolled.sizes import checked_size

__all__ = ["Window"]


class Window(Encoder):
    """A hidden layer over windows of tokens.

    Args:
        input_size: e.
        hidden_size: d, the length of a context.
        window: n, how many tokens a context is made of, itself among them.
        direct: whether the words stand in the context too; of the d numbers n·e are theirs then.
        bias: whether b_1 exists.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when the window is not a positive integer, or the words leave no room for a hidden unit.
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
                f"hidden_size is {hidden_size}; expected more than {words}: the {window} words that stand in a context "
                f"have {input_size} numbers each"
            )
        self.window = window
        self.direct = direct
        self.hidden = nn.Linear(words, hidden_size - words if direct else hidden_size, bias)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts; a sequence's own is the one at its end."""
        padded = pad(inputs, (0, 0, 0, 0, self.window - 1, 0))
        words = padded.unfold(0, self.window, 1).transpose(-1, -2).flatten(-2)
        contexts = torch.tanh(self.hidden(words))
        if self.direct:
            contexts = torch.cat((contexts, words), dim=-1)
        return contexts, layout.last(contexts)
