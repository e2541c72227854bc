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

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import DataError, UsageError

__all__ = ["Batch", "EncodedSequences", "length_buckets"]


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


@dataclass(frozen=True)
class EncodedSequences:
    """A corpus as one table, with a column for each position of each sequence."""

    table: Tensor
    """Shape (things said, positions of all sequences), int64."""
    starts: Tensor
    """Where each sequence begins, shape (sequences,), int64."""
    lengths: Tensor
    """Shape (sequences,), int64."""

    @classmethod
    def from_rows(cls, sequences: Sequence[Sequence[Sequence[int]]]) -> Self:
        """Lay sequences one behind the other.

        Args:
            sequences: of each all that is said, one row a thing, equally long.

        Returns:
            The corpus.

        Raises:
            DataError: when there is no sequence, or one has no position.
        """
        if not sequences:
            raise DataError("a split has no examples; expected at least one")
        counts = [len(rows[0]) for rows in sequences]
        if not all(counts):
            raise DataError(f"example {counts.index(0) + 1} of {len(counts)} is empty; expected at least one token")
        lengths = torch.tensor(counts)
        columns = [[value for row in rows for value in row] for rows in zip(*sequences, strict=True)]
        return cls(torch.tensor(columns), lengths.cumsum(0) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Share all sequences out into batches.

        Args:
            size: how many sequences a batch holds at most.
            generator: draws the order; without one the order is that of the lengths.

        Returns:
            The numbers of the sequences of each batch; every one is in exactly one.
        """
        return length_buckets(self.lengths, size, generator)

    def gather(self, which: Tensor, padding: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Lay some sequences side by side.

        Args:
            which: their numbers, shape (batch,), int64.
            padding: what is said behind a sequence's end, one value a thing.

        Returns:
            All that is said, shape (things said, batch, time); and the lengths, shape (batch,).
        """
        # In numpy: a batch of short sequences costs what the calls cost, and torch's cost more.
        numbers = which.numpy()
        lengths = self.lengths.numpy().take(numbers)
        offsets = np.arange(lengths.max())
        places = self.starts.numpy().take(numbers)[:, None] + offsets
        found = self.table.numpy().take(places, axis=1, mode="clip")  # behind the last sequence there is nothing
        np.copyto(found, np.array(padding)[:, None, None], where=offsets >= lengths[:, None])
        return torch.from_numpy(found), torch.from_numpy(lengths)
