"""A text classifier: embedding, recurrent encoder, pooling, head."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.lab.models.pooled_encoder import PooledEncoder

__all__ = ["Classifier"]


class Classifier(PooledEncoder):
    """Classify a text: y = head(p), with p the vector that :class:`PooledEncoder` computes from the other arguments."""

    def __init__(
        self,
        embedding: nn.Module,
        encoder: nn.Module,
        pooling: nn.Module,
        head: nn.Module,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding, encoder, pooling, dropout, word_dropout)
        self.head = head

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute logits, shape (batch, classes), from word indices, shape (batch, time), and the lengths of texts."""
        return self.head(self.read(tokens, lengths))
