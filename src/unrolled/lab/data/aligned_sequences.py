"""Sequences that say several things of every position: a word and its tag; a bracket and what it closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import DataError
from unrolled.lab.data.batching import length_buckets

__all__ = ["Aligned"]


@dataclass(frozen=True)
class Aligned:
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
