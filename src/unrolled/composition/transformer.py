r"""PyTorch's Transformer encoder over projected tokens with sinusoidal positions.

.. math:: u_t = W x_t + b + p_t, \qquad p_{t,2k} = \sin(t / 10000^{2k/d}),\; p_{t,2k+1} = \cos(t / 10000^{2k/d})

Padding is masked.

Source:
    Vaswani et al. (2017), arXiv:1706.03762, section 3; the baseline of Implicit n-grams, appendix D, which takes the
    mean of the contexts as the vector of a sequence (see unrolled.lab.models.pooling).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.cells.base import checked_dropout, checked_size
from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder
from unrolled.errors import UsageError

__all__ = ["TransformerEncoder"]

_LONGEST_WAVE = 10_000.0
"""Longest wave of the positions, in units of 2π, as in Vaswani et al. (2017)."""


class TransformerEncoder(Encoder):
    """Layers of self-attention.

    Args:
        input_size: Number of features of each token vector (e).
        hidden_size: Number of features of each context (d in the equations), a multiple of ``heads``.
        heads: Number of attention heads in each layer.
        num_layers: Number of layers.
        feedforward_size: Size of each layer's hidden layer; 4·d when omitted.
        dropout: Dropout probability within each layer.
        causal: Whether a position attends only to itself and earlier positions, as a language model requires.
        batch_first: Whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: A size is not a positive integer, ``hidden_size`` is not a multiple of ``heads``, or ``dropout`` is
            no number from 0 to below 1.
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
        self.causal = causal
        self.project = nn.Linear(input_size, hidden_size)
        layer = nn.TransformerEncoderLayer(hidden_size, heads, feedforward, checked_dropout(dropout))
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def positions(self, time: int, like: Tensor) -> Tensor:
        """Compute p_1 … p_T, shape (time, 1, d), with the type and device of ``like``."""
        steps = torch.arange(time, device=like.device, dtype=torch.float64)[:, None]
        waves = torch.arange(0, self.output_size, 2, device=like.device, dtype=torch.float64)
        angles = steps * torch.exp(waves * (-math.log(_LONGEST_WAVE) / self.output_size))
        both = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
        return both[:, None, : self.output_size].to(like.dtype)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Apply self-attention; the vector of a sequence is the context at its end."""
        time = len(inputs)
        tokens = self.project(inputs)
        tokens = tokens + self.positions(time, tokens)
        future = torch.ones(time, time, dtype=torch.bool, device=inputs.device).triu(1) if self.causal else None
        padding = ~layout.inside.T if layout.ragged else None
        contexts = self.layers(tokens, mask=future, src_key_padding_mask=padding)
        return contexts, layout.last(contexts)
