"""A text classifier: embedding, recurrent encoder, pooling, linear head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.errors import ShapeError, UsageError

__all__ = ["Classifier"]


class Classifier(nn.Module):
    r"""Classify a sequence of tokens.

    .. math:: y = W\,\mathrm{pool}(h_1, \dots, h_T) + b, \quad h = \mathrm{encoder}(E_{x_1}, \dots, E_{x_T})

    The parts are the caller's: any encoder with the interface of ``torch.nn.RNN`` will do, and any pooling
    with that of :mod:`unrolled.models.pooling`. Padding is packed away and never reaches a logit; sequences
    of equal length are not packed: that is faster.

    Args:
        embedding: from word indices to vectors.
        encoder: a batch-first recurrent network.
        pooling: from states and lengths to one vector.
        head: from that vector to the logits.
        dropout: the share of the features of word vectors and of the pooled vector dropped in training.
    """

    def __init__(
        self,
        embedding: nn.Module,
        encoder: nn.Module,
        pooling: nn.Module,
        head: nn.Module,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not getattr(encoder, "batch_first", True):
            raise UsageError("the encoder has batch_first=False; expected True")
        self.embedding = embedding
        self.encoder = encoder
        self.pooling = pooling
        self.head = head
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Give the logits.

        Args:
            tokens: word indices, shape (batch, time), int64.
            lengths: how many tokens each sequence has, shape (batch,); all of them when left out.

        Returns:
            Logits, shape (batch, classes).

        Raises:
            ShapeError: when tokens or lengths have other shapes.
            UsageError: when a length lies outside 1..time.
        """
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")
        lengths = _ragged(tokens, lengths)
        vectors = self.dropout(self.embedding(tokens))
        if lengths is None:
            states, _ = self.encoder(vectors)
        else:
            packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
            states, _ = self.encoder(packed)
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=tokens.shape[1])
        return self.head(self.dropout(self.pooling(states, lengths)))


def _ragged(tokens: Tensor, lengths: Tensor | None) -> Tensor | None:
    """Check the lengths; None when every sequence fills its row."""
    if lengths is None:
        return None
    batch, time = tokens.shape
    if lengths.shape != (batch,):
        raise ShapeError(f"lengths have shape {tuple(lengths.shape)}; expected ({batch},), one for each sequence")
    shortest, longest = torch.aminmax(lengths)
    if shortest < 1 or longest > time:
        raise UsageError(f"lengths lie between {shortest} and {longest}; expected 1 to {time}")
    return None if shortest == time else lengths
