"""Whoever wants to see a training while it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

__all__ = ["Callback", "CallbackList", "Epoch", "Step", "merit"]


@dataclass(frozen=True)
class Step:
    """What one batch came to."""

    number: int
    """Counted from 1, over all epochs."""
    epoch: int
    done: int
    """Batches of this epoch that have been learned, this one among them."""
    total: int
    """How many there are."""
    predictions: int
    """How many this batch held, in all processes."""
    loss: float
    """Mean of the batch's predictions, in the task's unit."""
    norm: float | None
    """Of the gradient, before it is cut; none where float16 overflowed and the step was left out."""
    lr: float


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training split came to. The same weights, data and settings give the same record."""

    number: int
    """Counted from 1."""
    step: int
    """How many steps had been made at its end."""
    loss: float
    """Mean loss of a prediction while the split was being learned, in the task's unit."""
    norm: float
    """Mean norm of the gradient, before it is cut."""
    lr: float
    """Of its last step."""
    dev: Mapping[str, float]
    """The task's measures on dev, at its end."""
    best: bool
    """Whether none before it was as good."""


def merit(metrics: Sequence[Metric], values: Mapping[str, float]) -> tuple[float, ...]:
    """Rank what was measured: the first measure decides, among equals the next."""
    signed = [values[each.name] if each.higher_is_better else -values[each.name] for each in metrics]
    return tuple(-math.inf if math.isnan(value) else value for value in signed)


class Callback:
    """Sees a training go by; a subclass overrides what it wants to see."""

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Learn what is about to run.

        Args:
            metrics: what epochs are judged by.
            settings: how it is trained.
            step: how many steps were made before, by a training that is resumed.
        """

    def on_step(self, step: Step) -> None:
        """Learn how a step ended.

        Args:
            step: the step.
        """

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Learn how an epoch ended.

        Args:
            epoch: the one that is over.
            best: the best so far.
            seconds: how long it took.
        """

    def on_message(self, text: str) -> None:
        """Learn of something worth a line.

        Args:
            text: the line.
        """

    def on_end(self) -> None:
        """Learn that it is over, for whatever reason."""


class CallbackList(Callback):
    """Several callbacks, told in turn."""

    def __init__(self, *callbacks: Callback) -> None:
        self.callbacks = callbacks

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Tell all."""
        for each in self.callbacks:
            each.on_start(metrics, settings, step)

    def on_step(self, step: Step) -> None:
        """Tell all."""
        for each in self.callbacks:
            each.on_step(step)

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Tell all."""
        for each in self.callbacks:
            each.on_epoch(epoch, best, seconds)

    def on_message(self, text: str) -> None:
        """Tell all."""
        for each in self.callbacks:
            each.on_message(text)

    def on_end(self) -> None:
        """Tell all."""
        for each in self.callbacks:
            each.on_end()
