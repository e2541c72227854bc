r"""PyTorch's Transformer encoder over projected tokens with sinusoidal positions.

.. math:: u_t = W x_t + b + p_t, \qquad p_{t,2k} = \sin(t / 10000^{2k/d}),\; p_{t,2k+1} = \cos(t / 10000^{2k/d})

Padding is masked. With ``causal`` a context sees no token behind its own, as a language model needs it.

Source:
    Vaswani et al. (2017), arXiv:1706.03762, section 3; the baseline of Implicit n-grams, appendix D, which takes
    the mean of the contexts for a sequence: see unrolled.lab.models.pooling.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder
from unrolled.errors import UsageError
from unrolled.sizes import checked_size

__all__ = ["Transformer"]

LONGEST_WAVE = 10_000.0


class Transformer(Encoder):
    """Layers of self-attention.

    Args:
        input_size: e.
        hidden_size: d.
        heads: of each layer's attention; they share out d.
        num_layers: how many layers.
        feedforward_size: of each layer's hidden layer; 4·d when left out.
        dropout: the share dropped in training within each layer.
        causal: whether a position sees only itself and what came before.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when the heads cannot share out d, a size is not a positive integer, or dropout is no share.
    """

    name = "transformer"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        heads: int = 4,
        num_layers: int = 1,
        feedforward_size: int | None = None,
        dropout: float = 0.1,
        causal: bool = False,
        batch_first: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        feedforward = 4 * hidden_size if feedforward_size is None else feedforward_size
        heads, num_layers = checked_size("heads", heads), checked_size("num_layers", num_layers)
        feedforward = checked_size("feedforward_size", feedforward)
        if hidden_size % heads:
            raise UsageError(f"hidden_size is {hidden_size}; expected a multiple of the {heads} heads")
        if not isinstance(dropout, float | int) or not 0 <= dropout < 1:
            raise UsageError(f"dropout is {dropout!r}; expected a number from 0 on, below 1")
        self.causal = causal
        self.project = nn.Linear(input_size, hidden_size)
        layer = nn.TransformerEncoderLayer(hidden_size, heads, feedforward, dropout)
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def positions(self, time: int, like: Tensor) -> Tensor:
        """Give p_1 … p_T.

        Args:
            time: how many.
            like: a tensor of the type and on the device that they are to have.

        Returns:
            Shape (time, 1, d).
        """
        steps = torch.arange(time, device=like.device, dtype=torch.float64)[:, None]
        waves = torch.arange(0, self.output_size, 2, device=like.device, dtype=torch.float64)
        angles = steps * torch.exp(waves * (-math.log(LONGEST_WAVE) / self.output_size))
        both = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
        return both[:, None, : self.output_size].to(like.dtype)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Attend; a sequence's own vector is the context at its end."""
        time = len(inputs)
        tokens = self.project(inputs)
        tokens = tokens + self.positions(time, tokens)
        future = torch.ones(time, time, dtype=torch.bool, device=inputs.device).triu(1) if self.causal else None
        padding = ~layout.inside.T if layout.ragged else None
        contexts = self.layers(tokens, mask=future, src_key_padding_mask=padding)
        return contexts, layout.last(contexts)
