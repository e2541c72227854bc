"""A plain training loop for experiments that study training itself: it records every step and never looks at dev.

All other training goes through :mod:`unrolled.lab.training`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.run_names import LOG

__all__ = ["StepLog", "WordScorer", "loss_curves", "train_steps"]


class WordScorer(nn.Module):
    """Word vectors, one cell and one linear layer, which gives scores after every word."""

    def __init__(self, words: int, cell: Cell, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, cell.input_size)
        self.cell = cell
        self.output = nn.Linear(cell.output_size, outputs)

    def hidden(self, words: Tensor) -> Tensor:
        """Run the cell over words, shape (time, batch), and return h_1 … h_T, shape (time, batch, output)."""
        return self.cell.hidden(self.cell.unroll(self.embedding(words))[1:])

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores after every word, shape (time, batch, outputs)."""
        return self.output(self.hidden(words))


@dataclass(frozen=True)
class StepLog:
    """The steps of a training."""

    losses: tuple[float, ...]
    """Of every batch."""
    norms: tuple[float, ...]
    """Of every gradient, before it was clipped."""
    diverged: bool
    """Whether it ended because a loss or a gradient was not finite; of that batch nothing was learned."""


def train_steps(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    optimiser: torch.optim.Optimizer,
    clip: float = math.inf,
) -> StepLog:
    """Take one step for each batch and stop when a loss or a gradient is not finite.

    Args:
        model: Its parameters are trained.
        batches: The batches, in their order.
        loss: Computes a scalar of a model and a batch.
        optimiser: Optimiser of the model's parameters.
        clip: Largest norm of a gradient; longer ones are shortened to it.

    Returns:
        The losses and the norms of the gradients.

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
            return StepLog(tuple(losses), tuple(norms), diverged=True)
        losses.append(cost.item())
        norms.append(norm.item())
        optimiser.step()
    return StepLog(tuple(losses), tuple(norms), diverged=False)


def loss_curves(run: Run) -> dict[str, Any]:
    """Read the losses from a run's log, in JSON types.

    Returns:
        ``steps`` and ``losses``: one for each logged step, the mean since the one before. ``epochs``: the steps at
        which an epoch ended, with ``training``, its mean loss, and ``dev``, the loss on dev.
    """
    lines = map(json.loads, (run.folder / LOG).read_text(encoding="utf-8").splitlines())
    steps = [line for line in lines if "best" not in line]  # the others sum an epoch up
    return {
        "steps": [line["step"] for line in steps],
        "losses": [line["loss"] for line in steps],
        "epochs": [epoch.step for epoch in run.history],
        "training": [epoch.loss for epoch in run.history],
        "dev": [epoch.dev["loss"] for epoch in run.history],
    }
