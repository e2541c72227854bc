"""Questions and the candidates for their answers in numbers, and batches of them."""

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
    """Some questions, each with all its candidates."""

    questions: Tensor
    """Word indices, shape (batch, time), int64; zero after a question's end."""
    lengths: Tensor
    """How many words each question has, shape (batch,), int64."""
    candidates: Tensor
    """Word indices, shape (batch, candidates, words), int64; zero after a sentence's end."""
    sizes: Tensor
    """How many words each candidate has, shape (batch, candidates), int64; zero where there is none."""
    shared: Tensor
    """What question and candidate share, shape (batch, candidates, counts)."""
    right: Tensor
    """Which candidates answer the question, shape (batch, candidates), bool."""


@dataclass(frozen=True)
class EncodedQuestions:
    """Questions in numbers: a batch of one for each."""

    rows: tuple[QuestionBatch, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def plan(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Share the questions out into batches.

        Args:
            size: how many questions a batch holds at most.
            generator: draws the order; without one it is that of the split.

        Returns:
            The numbers of the questions of each batch.
        """
        order = torch.arange(len(self)) if generator is None else torch.randperm(len(self), generator=generator)
        return list(order.split(size))

    def select(self, which: Tensor) -> QuestionBatch:
        """Lay some questions side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest question, sentence and list of candidates.
        """
        chosen = [self.rows[i] for i in which.tolist()]
        return QuestionBatch(
            *(pad_and_stack([getattr(row, field.name)[0] for row in chosen]) for field in fields(QuestionBatch))
        )


def pad_and_stack(parts: Sequence[Tensor]) -> Tensor:
    """Lay tensors of different sizes side by side.

    Args:
        parts: at least one, all with as many dimensions.

    Returns:
        One row for each, as large as the largest in every dimension, zero where another has ended.
    """
    shape = [max(sizes) for sizes in zip(*(part.shape for part in parts), strict=True)]
    pad_and_stack = parts[0].new_full((len(parts), *shape), PADDING)
    for row, part in zip(pad_and_stack, parts, strict=True):
        row[tuple(slice(size) for size in part.shape)] = part
    return pad_and_stack
