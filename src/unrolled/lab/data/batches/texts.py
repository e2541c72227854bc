"""Batches of texts with one label each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.lab.data.batches.base import Batch, EncodedSequences
from unrolled.lab.data.vocabulary import PADDING, Vocabulary

__all__ = ["EncodedTexts", "TextBatch"]


@dataclass(frozen=True)
class TextBatch(Batch):
    """Padded texts."""

    tokens: Tensor
    """Word indices, shape (batch, time), int64; 0 after a text's end."""
    lengths: Tensor
    """The number of tokens of each text, shape (batch,), int64."""
    labels: Tensor
    """The class of each text, int64, or a number, float32; shape (batch,)."""


@dataclass(frozen=True)
class EncodedTexts(EncodedSequences):
    """A split of texts with labels."""

    labels: Tensor
    """Shape (texts,), int64 or float32."""

    @classmethod
    def encode(cls, texts: Sequence[Sequence[str]], labels: Sequence[float], vocabulary: Vocabulary) -> EncodedTexts:
        """Look up the words of all texts; labels are classes (integers) or ratings.

        DataError if there is no text, or one has no token.
        """
        rows = EncodedSequences.from_rows([(vocabulary.encode(tokens),) for tokens in texts])
        return cls(rows.table, rows.starts, rows.lengths, torch.tensor(labels))

    def select(self, which: Tensor) -> TextBatch:
        """Return the texts with these indices as a batch."""
        (tokens,), lengths = self.gather(which, (PADDING,))
        return TextBatch(tokens, lengths, self.labels[which])
