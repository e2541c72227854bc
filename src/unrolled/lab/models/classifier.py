"""A text classifier: embedding, recurrent encoder, pooling, head."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.lab.models.run_encoder import check_batch_first, check_tokens, checked_lengths, run_encoder
from unrolled.lab.models.word_dropout import WordDropout

__all__ = ["Classifier"]


class Classifier(nn.Module):
    r"""Classify a sequence of tokens.

    .. math:: y = W\,\mathrm{pool}(h_1, \dots, h_T) + b, \quad h = \mathrm{encoder}(E_{x_1}, \dots, E_{x_T})

    Padding does not affect the logits; see :mod:`unrolled.lab.models.run_encoder`.

    Args:
        embedding: From word indices to vectors.
        encoder: A batch-first network with the interface of ``torch.nn.RNN``.
        pooling: From states and lengths to one vector, as in :mod:`unrolled.lab.models.pooling`.
        head: From that vector to the logits.
        dropout: Dropout probability of the features of word vectors and of the pooled vector.
        word_dropout: Probability that training replaces a word by ``<unk>``.

    Raises:
        UsageError: The encoder is not batch first.
    """

    def __init__(
        self,
        embedding: nn.Module,
        encoder: nn.Module,
        pooling: nn.Module,
        head: nn.Module,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_batch_first("encoder", encoder)
        self.embedding = embedding
        self.encoder = encoder
        self.pooling = pooling
        self.head = head
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the logits.

        Args:
            tokens: Word indices, shape (batch, time), int64.
            lengths: Number of tokens of each sequence, shape (batch,); the full time when omitted.

        Returns:
            Logits, shape (batch, classes).

        Raises:
            ShapeError: The tokens or the lengths have another shape.
            UsageError: A length is outside 1..time.
        """
        check_tokens("tokens", tokens)
        lengths = checked_lengths(lengths, tokens.shape)
        states = run_encoder(self.encoder, self.dropout(self.embedding(self.word_dropout(tokens))), lengths)
        return self.head(self.dropout(self.pooling(states, lengths)))
