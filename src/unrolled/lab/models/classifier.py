"""Models of whole texts: word dropout, the encoder that makes one vector of a text, and the classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.lab.data.vocabulary import UNKNOWN
from unrolled.lab.models.run_encoder import check_batch_first, check_tokens, checked_lengths, run_encoder

__all__ = ["Classifier", "PooledEncoder", "WordDropout"]


class WordDropout(nn.Module):
    """Replace each word by ``<unk>`` with probability ``rate`` in training mode.

    Source:
        Iyyer et al. (2015), Deep Unordered Composition, section 4, which drops the words.
        https://aclanthology.org/P15-1162
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, tokens: Tensor) -> Tensor:
        """Return word indices of the same shape."""
        if not (self.training and self.rate):
            return tokens
        return tokens.masked_fill(torch.rand(tokens.shape, device=tokens.device) < self.rate, UNKNOWN)

    def extra_repr(self) -> str:
        """Show the rate."""
        return str(self.rate)


class PooledEncoder(nn.Module):
    r"""Compute one vector of a text.

    .. math:: p = \mathrm{pool}(h_1, \dots, h_T), \quad h = \mathrm{encoder}(E_{x_1}, \dots, E_{x_T})

    Padding does not affect the vector; see :mod:`unrolled.lab.models.run_encoder`.

    Args:
        embedding: From word indices to vectors.
        encoder: A batch-first network with the interface of ``torch.nn.RNN``.
        pooling: From states and lengths to one vector, as in :mod:`unrolled.lab.models.pooling`.
        dropout: Dropout probability of the features of word vectors and of the pooled vector.
        word_dropout: Probability that training replaces a word by ``<unk>``.

    Raises:
        UsageError: The encoder is not batch first.
    """

    def __init__(
        self, embedding: nn.Module, encoder: nn.Module, pooling: nn.Module, dropout: float, word_dropout: float
    ) -> None:
        super().__init__()
        check_batch_first("encoder", encoder)
        self.embedding = embedding
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)

    def read(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the vectors of texts.

        Args:
            tokens: Word indices, shape (batch, time), int64.
            lengths: Number of words of each text, shape (batch,); the full time when omitted.

        Returns:
            Shape (batch, features).

        Raises:
            ShapeError: The tokens or the lengths have another shape.
            UsageError: A length is outside 1..time.
        """
        check_tokens("tokens", tokens)
        lengths = checked_lengths(lengths, tokens.shape)
        states = run_encoder(self.encoder, self.dropout(self.embedding(self.word_dropout(tokens))), lengths)
        return self.dropout(self.pooling(states, lengths))


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
