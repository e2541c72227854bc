"""The part that models of whole texts share: from the words of a text to one vector."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.lab.models.run_encoder import check_batch_first, check_tokens, checked_lengths, run_encoder
from unrolled.lab.models.word_dropout import WordDropout

__all__ = ["PooledEncoder"]


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
