"""Batches of questions with their candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.vocabulary import PADDING

__all__ = ["EncodedQuestions", "QuestionBatch", "pad_and_stack"]


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
    pad_and_stack = parts[0].new_full((len(parts), *shape), PADDING)
    for row, part in zip(pad_and_stack, parts, strict=True):
        row[tuple(slice(size) for size in part.shape)] = part
    return pad_and_stack
