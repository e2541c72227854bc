"""Evaluate a model on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from unrolled.lab.data.batches.base import MAX_TOKENS, Batch, bounded_plan
from unrolled.lab.training.task import Split, Task

__all__ = ["EvaluationStopped", "details", "evaluate"]


class EvaluationStopped(Exception):  # noqa: N818  # not an error: somebody asked for it
    """An evaluation was stopped before its end, on request."""


@torch.no_grad()
def evaluate(
    task: Task[Any, Any],
    model: nn.Module,
    split: Split[Batch],
    device: torch.device,
    stopped: Callable[[], bool] = lambda: False,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, float]:
    """Compute the task's metrics on a split, by name; the model's mode is restored afterwards.

    Raises:
        EvaluationStopped: If ``stopped``, which is called before every batch, returned True.
    """

    def batches() -> Iterator[Batch]:
        for batch in _batches(task, split, device, max_tokens):
            if stopped():
                raise EvaluationStopped
            yield batch

    with _evaluation_mode(model):
        found = task.compute_metrics(model, batches())
    return {each.name: float(found[each.name]) for each in task.metrics}


@torch.no_grad()
def details(task: Task[Any, Any], model: nn.Module, split: Split[Batch], device: torch.device) -> tuple[str, ...]:
    """Return lines of text about a model beyond its metrics; most tasks have none."""
    with _evaluation_mode(model):
        return task.details(model, _batches(task, split, device))


def _batches(
    task: Task[Any, Any], split: Split[Batch], device: torch.device, max_tokens: int = MAX_TOKENS
) -> Iterator[Batch]:
    for which in bounded_plan(split, task.evaluation_rows(split), max_tokens):
        yield split.select(which).to(device)


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and restore its mode at the end."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
