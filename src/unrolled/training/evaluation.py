"""Judging a model on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from unrolled.text.batching import Batch
from unrolled.training.task import Split, Task

__all__ = ["EvaluationStopped", "evaluate"]


class EvaluationStopped(Exception):  # noqa: N818  # no error: somebody asked
    """An evaluation that was asked to stop has no result."""


@torch.no_grad()
def evaluate(
    task: Task[Any, Any],
    model: nn.Module,
    split: Split[Batch],
    device: torch.device,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """Judge a model; its mode is put back afterwards.

    Args:
        task: whose measures are taken.
        model: one that the task built.
        split: what it is judged on.
        device: where the model lies.
        stopped: asked before every batch.

    Returns:
        A number for each of the task's measures, by its name.

    Raises:
        EvaluationStopped: when ``stopped`` said so.
    """

    def batches() -> Iterator[Batch]:
        for which in split.plan(task.evaluation_batch):
            if stopped():
                raise EvaluationStopped
            yield split.select(which).to(device)

    training = model.training
    model.eval()
    try:
        found = task.measure(model, batches())
    finally:
        model.train(training)
    return {each.name: float(found[each.name]) for each in task.measures}
