"""Batches, and how examples are grouped into batches of similar lengths.

Padding is wasted work for a recurrent network in training, and torch has no fast kernels for the packed sequences of
different lengths in evaluation. Examples are therefore sorted by length, in random order within a length, and cut into
batches. A batch ends early where the length changes, unless it is less than half full. The batches are then shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.vocabulary import PADDING, Vocabulary

__all__ = ["MAX_TOKENS", "Batch", "EncodedSequences", "EncodedTexts", "TextBatch", "bounded_plan", "length_buckets"]

MAX_TOKENS = 2**18
"""Tokens of a batch where nothing else is asked for; 64 reviews of IMDB have 180,000 at most."""


@dataclass(frozen=True)
class Batch:
    """Tensors with one row per example."""

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{field.name: change(getattr(self, field.name)) for field in fields(self)})

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        return self._map(lambda rows: rows.to(device))

    def share(self, rank: int, world: int) -> Self:
        """Return every ``world``-th row from ``rank`` on: the part of one of several processes."""
        return self._map(lambda rows: rows[rank::world])


class _Planned(Protocol):
    """A split that divides itself into batches."""

    def plan(self, size: int, generator: torch.Generator | None = None) -> Sequence[Tensor]: ...


def bounded_plan(
    split: _Planned, size: int, max_tokens: int, generator: torch.Generator | None = None
) -> Sequence[Tensor]:
    """Divide a split into batches of at most ``size`` examples and, padding counted, ``max_tokens`` tokens.

    A batch of ``split.plan`` with too many tokens is cut before its longer examples; a plan without such a batch stays
    as it is. The memory that a batch needs grows with its tokens. Running text, whose batches have a fixed size, has no
    bound: only a split with ``row_tokens``, the number of tokens of each example, has one.

    Raises:
        DataError: If a single example has more than ``max_tokens`` tokens.
    """
    plan = split.plan(size, generator)
    tokens: Tensor | None = getattr(split, "row_tokens", None)
    if tokens is None or size * int(tokens.max()) <= max_tokens:
        return plan
    if (longest := int(tokens.max())) > max_tokens:
        raise DataError(
            f"example {int(tokens.argmax()) + 1:,} of {len(tokens):,} has {longest:,} tokens, more than the "
            f"{max_tokens:,} of a batch; raise --max-tokens, or cut or skip long texts with --max-length"
        )
    return [part for batch in plan for part in batch.split(_parts(tokens[batch].tolist(), max_tokens))]


def _parts(counts: Sequence[int], most: int) -> list[int]:
    """Cut a batch into runs of examples whose number times the longest is at most ``most``; return their lengths."""
    parts, longest = [0], 0
    for count in counts:
        longest = max(longest, count)
        if (parts[-1] + 1) * longest > most:
            parts.append(0)
            longest = count
        parts[-1] += 1
    return parts


@dataclass(frozen=True)
class EncodedSequences:
    """Sequences with one or more numbers per position, such as a word and its tag, in one table."""

    table: Tensor
    """Shape (numbers per position, positions of all sequences), int64."""
    starts: Tensor
    """Where each sequence begins in the table, shape (sequences,), int64."""
    lengths: Tensor
    """Shape (sequences,), int64."""

    @classmethod
    def from_rows(cls, sequences: Sequence[Sequence[Sequence[int]]]) -> Self:
        """Build the table; each sequence is a tuple of equally long rows, one for each number of a position.

        DataError if there is no sequence, or one is empty.
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

    @property
    def row_tokens(self) -> Tensor:
        """The number of tokens of each sequence."""
        return self.lengths

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Assign each sequence to one batch of at most ``size``; see :func:`length_buckets`."""
        return length_buckets(self.lengths, size, generator)

    def gather(self, which: Tensor, padding: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Pad some sequences to the same length.

        Args:
            which: The indices of the sequences, shape (batch,), int64.
            padding: The values after the end of a sequence, one for each number of a position.

        Returns:
            The numbers, shape (numbers per position, batch, time), and the lengths, shape (batch,).
        """
        # numpy, because the overhead of torch's calls dominates a batch of short sequences
        numbers = which.numpy()
        lengths = self.lengths.numpy().take(numbers)
        offsets = np.arange(lengths.max())
        places = self.starts.numpy().take(numbers)[:, None] + offsets
        found = self.table.numpy().take(places, axis=1, mode="clip")  # the last sequence ends where the table ends
        np.copyto(found, np.array(padding)[:, None, None], where=offsets >= lengths[:, None])
        return torch.from_numpy(found), torch.from_numpy(lengths)


def length_buckets(lengths: Tensor, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
    """Group examples into batches of equal, or nearly equal, length.

    Args:
        lengths: The length of each example, shape (examples,).
        size: The maximal number of examples of a batch; UsageError if it is not positive.
        generator: Shuffles examples and batches; without one both are sorted by length.

    Returns:
        The indices of the examples of each batch, int64; every example is in exactly one batch.
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
