"""A text classifier: embedding, recurrent encoder, pooling, linear head."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.run_encoder import checked_lengths, run_encoder
from unrolled.lab.models.word_dropout import WordDropout

__all__ = ["Classifier"]


class Classifier(nn.Module):
    r"""Classify a sequence of tokens.

    .. math:: y = W\,\mathrm{pool}(h_1, \dots, h_T) + b, \quad h = \mathrm{encoder}(E_{x_1}, \dots, E_{x_T})

    The parts are the caller's: any encoder with the interface of ``torch.nn.RNN`` will do, and any pooling
    with that of :mod:`unrolled.lab.models.pooling`. Padding never reaches a logit: it is run over and blanked in
    training, packed away elsewhere, as :mod:`unrolled.lab.models.run_encoder` says.

    Args:
        embedding: from word indices to vectors.
        encoder: a batch-first recurrent network.
        pooling: from states and lengths to one vector.
        head: from that vector to the logits.
        dropout: the share of the features of word vectors and of the pooled vector dropped in training.
        word_dropout: the share of words read as ``<unk>`` in training.
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
        if not getattr(encoder, "batch_first", True):
            raise UsageError("the encoder has batch_first=False; expected True")
        self.embedding = embedding
        self.encoder = encoder
        self.pooling = pooling
        self.head = head
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)

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
        lengths = checked_lengths(lengths, tokens.shape)
        states = run_encoder(self.encoder, self.dropout(self.embedding(self.word_dropout(tokens))), lengths)
        return self.head(self.dropout(self.pooling(states, lengths)))
