"""Texts with one label each, as word indices, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import Batch, length_buckets
from unrolled.lab.data.vocabulary import PADDING, Vocabulary

__all__ = ["EncodedTexts", "TextBatch"]


@dataclass(frozen=True)
class TextBatch(Batch):
    """Some texts, side by side."""

    tokens: Tensor
    """Word indices, shape (batch, time), int64; zero after a text's end."""
    lengths: Tensor
    """How many tokens each text has, shape (batch,), int64."""
    labels: Tensor
    """What is to be said of each text, shape (batch,): its class, int64, or a number."""


@dataclass(frozen=True)
class EncodedTexts:
    """A corpus as four tensors: all indices in one row, and where each text lies in it."""

    indices: Tensor
    """Shape (tokens of all texts,), int64."""
    starts: Tensor
    """Shape (texts,), int64."""
    lengths: Tensor
    """Shape (texts,), int64."""
    labels: Tensor
    """Shape (texts,), int64 or float32."""

    @classmethod
    def encode(cls, texts: Sequence[Sequence[str]], labels: Sequence[float], vocabulary: Vocabulary) -> EncodedTexts:
        """Look up every word of a corpus.

        Args:
            texts: the tokens of each.
            labels: what is to be said of each: classes, as whole numbers, or ratings.
            vocabulary: where to look.

        Returns:
            The corpus in numbers.

        Raises:
            DataError: when there is no text, or one has no token.
        """
        if not texts:
            raise DataError("a split has no texts; expected at least one")
        rows = [vocabulary.encode(tokens) for tokens in texts]
        if not all(rows):
            raise DataError(f"text {rows.index([]) + 1} of {len(rows)} is empty; expected at least one token")
        lengths = torch.tensor([len(row) for row in rows])
        return cls(
            indices=torch.tensor([index for row in rows for index in row]),
            starts=lengths.cumsum(0) - lengths,
            lengths=lengths,
            labels=torch.tensor(labels),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, which: Tensor) -> TextBatch:
        """Lay some texts side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest text.
        """
        lengths = self.lengths[which]
        offsets = torch.arange(int(lengths.max()))
        places = (self.starts[which, None] + offsets).clamp(max=len(self.indices) - 1)
        tokens = self.indices[places].masked_fill(offsets >= lengths[:, None], PADDING)
        return TextBatch(tokens, lengths, self.labels[which])

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Share all texts out into batches.

        Args:
            size: how many texts a batch holds at most.
            generator: draws the order; without one the order is that of the lengths.

        Returns:
            The numbers of the texts of each batch; every text is in exactly one.
        """
        return length_buckets(self.lengths, size, generator)
