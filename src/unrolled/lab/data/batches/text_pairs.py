"""Batches of pairs of texts: sentences with translations, and questions with their candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from unrolled.lab.data.batches.base import Batch, length_buckets
from unrolled.lab.data.vocabulary import PADDING

__all__ = ["EncodedPairs", "EncodedQuestions", "QuestionBatch", "TranslationBatch", "pad_and_stack"]


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

    @cached_property
    def row_tokens(self) -> Tensor:
        """The number of words of the longer sentence of each pair."""
        return torch.tensor([max(map(len, pair)) for pair in zip(self.sources, self.targets, strict=True)])

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


@dataclass(frozen=True)
class QuestionBatch(Batch):
    """Padded questions, each with all its candidates."""

    questions: Tensor
    """Word indices, shape (batch, time), int64; 0 after a question's end."""
    lengths: Tensor
    """The number of words of each question, shape (batch,), int64."""
    candidates: Tensor
    """Word indices, shape (batch, candidates, words), int64; 0 after a sentence's end."""
    sizes: Tensor
    """The number of words of each candidate, shape (batch, candidates), int64; 0 for padding."""
    shared: Tensor
    """The features of the words that question and candidate share, shape (batch, candidates, features)."""
    right: Tensor
    """Which candidates are right, shape (batch, candidates), bool."""


@dataclass(frozen=True)
class EncodedQuestions:
    """A split of questions, each as a batch of one."""

    rows: tuple[QuestionBatch, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def row_tokens(self) -> Tensor:
        """The number of words of all candidates of each question, padding counted."""
        return torch.tensor([max(row.candidates[0].numel(), row.questions.shape[1]) for row in self.rows])

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Assign each question to one batch, in random order if there is a generator."""
        order = torch.arange(len(self)) if generator is None else torch.randperm(len(self), generator=generator)
        return list(order.split(size))

    def select(self, which: Tensor) -> QuestionBatch:
        """Return the questions with these indices as a batch."""
        chosen = [self.rows[i] for i in which.tolist()]
        return QuestionBatch(
            *(pad_and_stack([getattr(row, field.name)[0] for row in chosen]) for field in fields(QuestionBatch))
        )


def pad_and_stack(parts: Sequence[Tensor]) -> Tensor:
    """Stack tensors with the same number of dimensions and different sizes, padded with zeros at their ends."""
    shape = [max(sizes) for sizes in zip(*(part.shape for part in parts), strict=True)]
    stacked = parts[0].new_full((len(parts), *shape), PADDING)
    for row, part in zip(stacked, parts, strict=True):
        row[tuple(slice(size) for size in part.shape)] = part
    return stacked
