"""Training callbacks, and the records of steps and epochs that they receive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

__all__ = ["Callback", "CallbackList", "Epoch", "Step", "ranking_key"]


@dataclass(frozen=True)
class Step:
    """One training step: a batch and one update of the weights."""

    number: int
    """Counted from 1, over all epochs."""
    epoch: int
    done: int
    """Batches of this epoch that have been trained on, this one included."""
    total: int
    """Batches in this epoch."""
    predictions: int
    """Predictions in this batch, in all processes."""
    loss: float
    """Mean loss of a prediction, in the task's unit."""
    norm: float | None
    """Norm of the gradient before clipping; None where float16 overflowed and the step was skipped."""
    lr: float


@dataclass(frozen=True)
class Epoch:
    """One pass over the training split. The same weights, data and settings give the same record."""

    number: int
    """Counted from 1."""
    step: int
    """Steps made so far, over all epochs."""
    loss: float
    """Mean training loss of a prediction, in the task's unit."""
    norm: float
    """Mean norm of the gradient before clipping."""
    lr: float
    """Learning rate of the last step."""
    dev: Mapping[str, float]
    """The task's metrics on dev at the end of the epoch."""
    best: bool
    """Whether this epoch is the best so far."""


def ranking_key(metrics: Sequence[Metric], values: Mapping[str, float]) -> tuple[float, ...]:
    """Return a key whose maximum is the best epoch: the first metric decides, ties go to the next; NaN is worst."""
    signed = [values[each.name] if each.higher_is_better else -values[each.name] for each in metrics]
    return tuple(-math.inf if math.isnan(value) else value for value in signed)


class Callback:
    """Base class of training callbacks; a subclass overrides the events it needs."""

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Training starts, or resumes after ``step`` steps."""

    def on_step(self, step: Step) -> None:
        """A step has ended."""

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """An epoch has ended after ``seconds`` seconds; ``best`` is the best epoch so far."""

    def on_message(self, text: str) -> None:
        """There is one line of text for the user."""

    def on_end(self) -> None:
        """Training has ended, for whatever reason."""


class CallbackList(Callback):
    """Pass every event on to several callbacks, in order."""

    def __init__(self, *callbacks: Callback) -> None:
        self.callbacks = callbacks

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Pass the event on."""
        for each in self.callbacks:
            each.on_start(metrics, settings, step)

    def on_step(self, step: Step) -> None:
        """Pass the event on."""
        for each in self.callbacks:
            each.on_step(step)

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Pass the event on."""
        for each in self.callbacks:
            each.on_epoch(epoch, best, seconds)

    def on_message(self, text: str) -> None:
        """Pass the event on."""
        for each in self.callbacks:
            each.on_message(text)

    def on_end(self) -> None:
        """Pass the event on."""
        for each in self.callbacks:
            each.on_end()
