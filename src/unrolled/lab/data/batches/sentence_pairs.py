"""Sentences and their translations in numbers, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from unrolled.lab.data.batches.base import Batch, length_buckets
from unrolled.lab.data.vocabulary import PADDING

__all__ = ["EncodedPairs", "TranslationBatch"]


@dataclass(frozen=True)
class TranslationBatch(Batch):
    """Some sentences and their translations, side by side."""

    source: Tensor
    """Word indices, shape (batch, time), int64; zero after a sentence's end."""
    lengths: Tensor
    """How many words each source has, shape (batch,), int64."""
    target: Tensor
    """Word indices, ``<eos>`` at the end, shape (batch, positions), int64; zero behind it. A word that the vocabulary
    does not know has a number of its own beyond the vocabulary's: the measure tells them apart, the model cannot."""


@dataclass(frozen=True)
class EncodedPairs:
    """Sentences and translations in numbers."""

    sources: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.sources)

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Put pairs together whose sources, and then whose targets, are of equal length, or nearly.

        Args:
            size: how many pairs a batch holds at most.
            generator: draws the order; without one it is that of the lengths.

        Returns:
            The numbers of the pairs of each batch; every pair is in exactly one.
        """
        long = max(map(len, self.targets)) + 1
        pairs = zip(self.sources, self.targets, strict=True)
        return length_buckets(
            torch.tensor([len(source) * long + len(target) for source, target in pairs]), size, generator
        )

    def select(self, which: Tensor) -> TranslationBatch:
        """Lay some pairs side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest sentences.
        """
        sources = [self.sources[i] for i in which.tolist()]
        targets = [self.targets[i] for i in which.tolist()]
        return TranslationBatch(_padded(sources), torch.tensor([len(row) for row in sources]), _padded(targets))


def _padded(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence(list(rows), batch_first=True, padding_value=PADDING)
