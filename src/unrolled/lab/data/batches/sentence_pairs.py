"""Batches of sentences and their translations."""

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
    """Padded sentences and translations."""

    source: Tensor
    """Word indices, shape (batch, time), int64; 0 after a sentence's end."""
    lengths: Tensor
    """The number of words of each source, shape (batch,), int64."""
    target: Tensor
    """Word indices with ``<eos>`` at the end, shape (batch, positions), int64; 0 after a sentence's end. Each unknown
    word has its own index beyond the vocabulary's: the metric tells them apart, the model cannot."""


@dataclass(frozen=True)
class EncodedPairs:
    """A split of sentences and translations, each as word indices."""

    sources: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.sources)

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Assign each pair to one batch, so that first the sources and then the targets have similar lengths."""
        long = max(map(len, self.targets)) + 1
        pairs = zip(self.sources, self.targets, strict=True)
        return length_buckets(
            torch.tensor([len(source) * long + len(target) for source, target in pairs]), size, generator
        )

    def select(self, which: Tensor) -> TranslationBatch:
        """Return the pairs with these indices as a batch."""
        sources = [self.sources[i] for i in which.tolist()]
        targets = [self.targets[i] for i in which.tolist()]
        return TranslationBatch(_pad(sources), torch.tensor([len(row) for row in sources]), _pad(targets))


def _pad(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence(list(rows), batch_first=True, padding_value=PADDING)
