"""The state of a training apart from the model and the generators of random numbers: counters and records, as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.training.callbacks import Epoch, Step
from unrolled.lab.training.logs import epoch_from_record, epoch_to_record
from unrolled.lab.training.settings import TrainingSettings

__all__ = ["RunningMeans", "TrainingState"]

_SMALL = 500  # examples of a dev split
_LOSS = "loss"


@dataclass
class RunningMeans:
    """Mean loss and mean gradient norm of some steps."""

    loss: float = 0.0
    predictions: int = 0
    norm: float = 0.0
    norms: int = 0
    """Number of steps that had a norm."""
    seconds: float = 0.0

    def add(self, step: Step, seconds: float) -> None:
        """Add a step that took ``seconds`` seconds."""
        self.loss += step.loss * step.predictions
        self.predictions += step.predictions
        if step.norm is not None:
            self.norm += step.norm
            self.norms += 1
        self.seconds += seconds

    @property
    def means(self) -> tuple[float, float]:
        """The mean loss of a prediction and the mean norm of a step."""
        return self.loss / max(self.predictions, 1), self.norm / max(self.norms, 1)


@dataclass
class TrainingState:
    """The state of a training between two steps."""

    epoch: int = 1
    """The current epoch, counted from 1."""
    batch: int = 0
    """Batches of this epoch that have been trained on."""
    step: int = 0
    """Steps made so far."""
    window: RunningMeans = field(default_factory=RunningMeans)
    """Means over the steps since the last line of the log."""
    whole: RunningMeans = field(default_factory=RunningMeans)
    """Means over the steps of this epoch."""
    history: list[Epoch] = field(default_factory=list)
    best: str | None = None
    """Name of the file of the best weights."""
    predictions: int = 0
    """Predictions in the epochs that have ended."""
    training: float = 0.0
    """Seconds spent on their steps."""
    evaluation: float = 0.0
    """Seconds spent on evaluation on dev."""
    logs: dict[str, int] = field(default_factory=dict)
    """Sizes of the log's files in bytes."""
    scaler: dict[str, Any] = field(default_factory=dict)
    """State of the gradient scaler of float16."""

    @property
    def best_epoch(self) -> Epoch:
        """The best epoch so far; there must be one."""
        return next(epoch for epoch in reversed(self.history) if epoch.best)

    @property
    def cuts(self) -> int:
        """Number of epochs that were not the best so far when they ended."""
        return sum(not epoch.best for epoch in self.history)

    def over(self, settings: TrainingSettings, dev: int) -> bool:
        """Tell whether training ends here: after the last epoch or step, or by early stopping.

        On a dev split of fewer than 500 examples (``dev`` is their number) an epoch with the lowest loss so far is
        progress too. There the accuracy moves in steps of 0.2 points or more and often stands still while the network
        still learns; the loss, which sees every probability, does not. The best epoch is the metric's.
        """
        if not self.history:
            return False
        last = self.history[-1]
        return (
            last.number >= settings.epochs
            or (self.exhausted(settings) and not self.batch)  # an epoch that was cut short is evaluated first
            or last.number - self._progress(dev) >= settings.patience
        )

    def _progress(self, dev: int) -> int:
        """Return the number of the last epoch that was better than all before it."""
        losses = [epoch.dev[_LOSS] for epoch in self.history if not math.isnan(epoch.dev.get(_LOSS, math.nan))]
        if dev >= _SMALL or len(losses) < len(self.history):
            return self.best_epoch.number
        lowest = self.history[losses.index(min(losses))]
        return max(self.best_epoch.number, lowest.number)

    def exhausted(self, settings: TrainingSettings) -> bool:
        """Tell whether the largest number of steps has been made."""
        return settings.steps is not None and self.step >= settings.steps

    def metrics(self, test: Mapping[str, float], parameters: int) -> dict[str, float]:
        """Return the metrics of a training that has ended, with those on test and the number of parameters."""
        best = self.best_epoch
        return {
            **{f"test_{name}": value for name, value in test.items()},
            **{f"dev_{name}": value for name, value in best.dev.items()},
            "best_epoch": best.number,
            "epochs": len(self.history),
            "steps": self.step,
            "seconds": round(self.training + self.evaluation, 3),
            "predictions_per_second": round(self.predictions / self.training, 1),
            "parameters": parameters,
        }

    def to_record(self) -> dict[str, Any]:
        """Return the state as a JSON object, which keeps every digit of a float."""
        return {**asdict(self), "history": [epoch_to_record(epoch) for epoch in self.history]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TrainingState:
        """Return the state of a JSON object."""
        try:
            values = dict(record)
            if "judging" in values and "evaluation" not in values:  # the former name of these seconds
                values["evaluation"] = values.pop("judging")
            window, whole = RunningMeans(**values.pop("window")), RunningMeans(**values.pop("whole"))
            history = [epoch_from_record(epoch) for epoch in values.pop("history")]
            state = cls(**values, window=window, whole=whole, history=history)
            state._check()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this checkpoint is damaged, or was written by another version; {error!s:.120}") from None
        return state

    def _check(self) -> None:
        """Refuse values that no training has; ValueError."""
        counts = {"epoch": self.epoch, "batch": self.batch, "step": self.step, "predictions": self.predictions}
        numbers = {"training": self.training, "evaluation": self.evaluation}
        for each in (self.window, self.whole):
            counts |= {"predictions of a mean": each.predictions, "norms": each.norms}
            numbers |= {"loss": each.loss, "norm": each.norm, "seconds": each.seconds}
        for name, value in (counts | self.logs).items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} is {value!r:.40}")
        for name, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValueError(f"{name} is {number!r:.40}")
        if any(each.best for each in self.history) != (self.best is not None):
            raise ValueError("the best epoch is missing")
        if not isinstance(self.scaler, dict):
            raise ValueError("the scaler is no object")
