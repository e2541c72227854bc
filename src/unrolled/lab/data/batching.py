"""Batches of texts of equal length, as far as they can be had.

A recurrent network works one position at a time, so padding, which is run over in training, is wasted work; where a
model is judged, texts of different lengths are packed, for which torch has no fast kernels. Texts are therefore sorted
by length (in random order within a length) and cut into batches; a batch ends early where the length changes, unless it
is less than half full.
The batches themselves then come in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.vocabulary import PADDING, Vocabulary

__all__ = ["Batch", "EncodedTexts", "TextBatch", "length_buckets"]


@dataclass(frozen=True)
class Batch:
    """Tensors with one row an example."""

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{field.name: change(getattr(self, field.name)) for field in fields(self)})

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def to(self, device: torch.device) -> Self:
        """Move all of it.

        Args:
            device: where to.

        Returns:
            The batch there.
        """
        return self._map(lambda rows: rows.to(device))

    def share(self, rank: int, world: int) -> Self:
        """Give the part of one of several processes that learn a batch together.

        Args:
            rank: which, from 0.
            world: how many there are.

        Returns:
            Every ``world``-th row, from ``rank`` on; none when there are fewer rows than processes.
        """
        return self._map(lambda rows: rows[rank::world])


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


def length_buckets(lengths: Tensor, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
    """Share texts out into batches of equal, or nearly equal, length.

    Args:
        lengths: each text's length, shape (texts,).
        size: how many texts a batch holds at most.
        generator: draws the order of texts and batches; without one both are sorted by length.

    Returns:
        For each batch the numbers of its texts, int64.

    Raises:
        UsageError: when ``size`` is not positive.
    """
    if size < 1:
        raise UsageError(f"the batch size is {size}; expected 1 or more")
    count = len(lengths)
    order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
    order = order[torch.argsort(lengths[order], stable=True)]
    cuts = [0]
    for stop in torch.unique_consecutive(lengths[order], return_counts=True)[1].cumsum(0).tolist():
        while stop - cuts[-1] >= size:
            cuts.append(cuts[-1] + size)
        if 2 * (stop - cuts[-1]) >= size:
            cuts.append(stop)
    if cuts[-1] < count:
        cuts.append(count)
    buckets = [order[start:stop] for start, stop in pairwise(cuts)]
    if generator is None:
        return buckets
    return [buckets[i] for i in torch.randperm(len(buckets), generator=generator).tolist()]
