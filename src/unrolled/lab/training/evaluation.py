"""Judging a model on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from unrolled.lab.data.batches.base import Batch
from unrolled.lab.training.task import Split, Task

__all__ = ["EvaluationStopped", "details", "evaluate"]


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
        A number for each of the task's metrics, by its name.

    Raises:
        EvaluationStopped: when ``stopped`` said so.
    """

    def batches() -> Iterator[Batch]:
        for batch in _batches(task, split, device):
            if stopped():
                raise EvaluationStopped
            yield batch

    with _judged(model):
        found = task.compute_metrics(model, batches())
    return {each.name: float(found[each.name]) for each in task.metrics}


@torch.no_grad()
def details(task: Task[Any, Any], model: nn.Module, split: Split[Batch], device: torch.device) -> tuple[str, ...]:
    """Say what there is to say of a model beyond its measures; its mode is put back afterwards."""
    with _judged(model):
        return task.details(model, _batches(task, split, device))


def _batches(task: Task[Any, Any], split: Split[Batch], device: torch.device) -> Iterator[Batch]:
    for which in split.plan(task.evaluation_batch):
        yield split.select(which).to(device)


@contextmanager
def _judged(model: nn.Module) -> Iterator[None]:
    """Put a model into eval mode, and back."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
