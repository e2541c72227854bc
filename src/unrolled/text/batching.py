"""Batches of texts of equal length, as far as they can be had.

A recurrent network works one position at a time, so padding is wasted work, and texts of different lengths
must be packed, for which torch has no fast kernels. Texts are therefore sorted by length (in random order
within a length) and cut into batches; a batch ends early where the length changes, unless it is less than
half full.
The batches themselves then come in random order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from unrolled.errors import DataError, UsageError
from unrolled.text.corpus import Example
from unrolled.text.vocabulary import PADDING, Vocabulary

__all__ = ["Batch", "EncodedTexts", "length_buckets"]


@dataclass(frozen=True)
class Batch:
    """Some texts, side by side."""

    tokens: Tensor
    """Word indices, shape (batch, time), int64; zero after a text's end."""
    lengths: Tensor
    """How many tokens each text has, shape (batch,), int64."""
    labels: Tensor
    """Each text's class, shape (batch,), int64."""


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
    """Shape (texts,), int64."""

    @classmethod
    def encode(cls, examples: Sequence[Example], vocabulary: Vocabulary) -> EncodedTexts:
        """Look up every word of a corpus.

        Args:
            examples: the texts.
            vocabulary: where to look.

        Returns:
            The corpus in numbers.

        Raises:
            DataError: when there is no text, or one has no token.
        """
        if not examples:
            raise DataError("a split has no texts; expected at least one")
        rows = [vocabulary.encode(example.tokens) for example in examples]
        if not all(rows):
            raise DataError(f"text {rows.index([]) + 1} of {len(rows)} is empty; expected at least one token")
        lengths = torch.tensor([len(row) for row in rows])
        return cls(
            indices=torch.tensor([index for row in rows for index in row]),
            starts=lengths.cumsum(0) - lengths,
            lengths=lengths,
            labels=torch.tensor([example.label for example in examples]),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, which: Tensor) -> Batch:
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
        return Batch(tokens, lengths, self.labels[which])

    def batches(self, size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """Go through all texts once.

        Args:
            size: how many texts a batch holds at most.
            generator: draws the order; without one the order is that of the lengths.

        Yields:
            Batches; every text is in exactly one.
        """
        for which in length_buckets(self.lengths, size, generator):
            yield self.select(which)


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
