"""Evaluate a model on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.lab.data.batches.base import MAX_TOKENS, Batch, bounded_plan
from unrolled.lab.models.evaluation_mode import evaluation_mode
from unrolled.lab.training.task import Split, Task
from unrolled.lab.training.text_tasks import TextTask

__all__ = ["EvaluationStopped", "details", "evaluate", "evaluate_texts"]


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

    with evaluation_mode(model):
        found = task.compute_metrics(model, batches())
    return {each.name: float(found[each.name]) for each in task.metrics}


def evaluate_texts(
    task: TextTask[Any], model: nn.Module, texts: Split[Any], device: torch.device
) -> tuple[dict[str, float], Tensor]:
    """Compute the metrics as :func:`evaluate` does, and return the outputs with them, shape (texts, outputs)."""
    outputs: list[Tensor] = []
    handle = model.register_forward_hook(lambda _model, _inputs, output: outputs.append(output.cpu()))
    try:
        metrics = evaluate(task, model, texts, device)
    finally:
        handle.remove()
    order = torch.cat(list(bounded_plan(texts, task.evaluation_rows(texts), MAX_TOKENS)))
    return metrics, torch.cat(outputs)[order.argsort()]


@torch.no_grad()
def details(task: Task[Any, Any], model: nn.Module, split: Split[Batch], device: torch.device) -> tuple[str, ...]:
    """Return lines of text about a model beyond its metrics; most tasks have none."""
    with evaluation_mode(model):
        return task.details(model, _batches(task, split, device))


def _batches(
    task: Task[Any, Any], split: Split[Batch], device: torch.device, max_tokens: int = MAX_TOKENS
) -> Iterator[Batch]:
    for which in bounded_plan(split, task.evaluation_rows(split), max_tokens):
        yield split.select(which).to(device)
