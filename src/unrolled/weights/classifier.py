"""The classifier that a file of weights is read as: embedding, recurrent network, last state, linear."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError

__all__ = ["LastStateClassifier"]


class LastStateClassifier(nn.Module):
    """Classify a sequence by the last state of its recurrent network.

    Of a bidirectional network the head reads the forward state after the last token and the backward state after the
    first token, as ``h_n`` holds them.

    Args:
        embedding: Maps word indices to vectors.
        encoder: A batch-first recurrent network.
        head: Maps the last state to the logits.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.RNNBase, head: nn.Linear) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = encoder
        self.head = head

    def forward(self, tokens: Tensor) -> Tensor:
        """Compute the logits, shape (batch, classes), of word indices, shape (batch, time), without padding."""
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")
        states = self.encoder(self.embedding(tokens))[0]
        forward, *backward = states.chunk(2 if self.encoder.bidirectional else 1, dim=-1)
        return self.head(torch.cat([forward[:, -1], *(each[:, 0] for each in backward)], dim=-1))
