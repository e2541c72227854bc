"""A plain loop for experiments that watch training itself: every step in sight, nothing chosen on dev.

Whatever is to be trained well goes through :mod:`unrolled.lab.training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.base import Cell

__all__ = ["Learned", "WordReader", "learn"]


class WordReader(nn.Module):
    """Word vectors, one cell, one linear layer.

    Args:
        words: how many there are.
        cell: reads their vectors; its ``input_size`` is theirs.
        outputs: how many scores are given.
    """

    def __init__(self, words: int, cell: Cell, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, cell.input_size)
        self.cell = cell
        self.output = nn.Linear(cell.output_size, outputs)

    def hidden(self, words: Tensor) -> Tensor:
        """Read words.

        Args:
            words: indices, shape (time, batch), int64.

        Returns:
            h_1 … h_T, shape (time, batch, output).
        """
        return self.cell.hidden(self.cell.unroll(self.embedding(words))[1:])

    def forward(self, words: Tensor) -> Tensor:
        """Score after every word.

        Args:
            words: indices, shape (time, batch), int64.

        Returns:
            Scores, shape (time, batch, outputs).
        """
        return self.output(self.hidden(words))


@dataclass(frozen=True)
class Learned:
    """How a training went."""

    losses: tuple[float, ...]
    """Of every batch."""
    norms: tuple[float, ...]
    """Of every gradient, before it was clipped."""
    diverged: bool
    """Whether it ended because a loss or a gradient was not finite; of that batch nothing was learned."""


def learn(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    optimiser: torch.optim.Optimizer,
    clip: float = math.inf,
) -> Learned:
    """Take one step a batch.

    Args:
        model: whose parameters are to learn.
        batches: in the order in which they are to be learned.
        loss: of a model and a batch, a scalar.
        optimiser: of the model's parameters.
        clip: the norm to which longer gradients are shortened.

    Returns:
        How it went.

    Source:
        CS 224D, lecture notes IV (2015), algorithm 1, for the clipping.
    """
    losses: list[float] = []
    norms: list[float] = []
    for batch in batches:
        cost = loss(model, batch)
        optimiser.zero_grad()
        cost.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        if not (math.isfinite(cost.item()) and math.isfinite(norm.item())):
            return Learned(tuple(losses), tuple(norms), diverged=True)
        losses.append(cost.item())
        norms.append(norm.item())
        optimiser.step()
    return Learned(tuple(losses), tuple(norms), diverged=False)
