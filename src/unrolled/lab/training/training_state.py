"""Where a training stands: all of it that is not a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.training.callbacks import Epoch, Step
from unrolled.lab.training.logs import from_record, to_record
from unrolled.lab.training.settings import TrainingSettings

__all__ = ["Sums", "TrainingState"]


@dataclass
class Sums:
    """What some steps came to."""

    loss: float = 0.0
    predictions: int = 0
    norm: float = 0.0
    norms: int = 0
    """How many steps had a norm."""
    seconds: float = 0.0

    def add(self, step: Step, seconds: float) -> None:
        """Take one more step in."""
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
    """Where a training stands, between two steps."""

    epoch: int = 1
    """The one under way."""
    batch: int = 0
    """How many batches of it have been learned."""
    step: int = 0
    """How many steps have been made."""
    window: Sums = field(default_factory=Sums)
    """The steps since the last line of the log."""
    whole: Sums = field(default_factory=Sums)
    """The steps of this epoch."""
    history: list[Epoch] = field(default_factory=list)
    best: str | None = None
    """The file of the best weights."""
    predictions: int = 0
    """Those of the epochs that are over."""
    training: float = 0.0
    """Seconds of their steps."""
    judging: float = 0.0
    """Seconds spent on dev."""
    logs: dict[str, int] = field(default_factory=dict)
    """Where the files of the log ended."""
    scaler: dict[str, Any] = field(default_factory=dict)
    """That of float16."""

    @property
    def best_epoch(self) -> Epoch:
        """The best so far; there is one."""
        return next(epoch for epoch in reversed(self.history) if epoch.best)

    @property
    def cuts(self) -> int:
        """How many epochs were not the best so far when they ended."""
        return sum(not epoch.best for epoch in self.history)

    def over(self, settings: TrainingSettings) -> bool:
        """Say whether the training has come to its end."""
        if not self.history:
            return False
        last = self.history[-1]
        return (
            last.number >= settings.epochs
            or (self.exhausted(settings) and not self.batch)  # an epoch that it cut short is judged first
            or last.number - self.best_epoch.number >= settings.patience
        )

    def exhausted(self, settings: TrainingSettings) -> bool:
        """Say whether all steps that are allowed have been made."""
        return settings.steps is not None and self.step >= settings.steps

    def to_record(self) -> dict[str, Any]:
        """Give the state in JSON's types, which keep every digit of a float."""
        return {**asdict(self), "history": [to_record(epoch) for epoch in self.history]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TrainingState:
        """Make a state of what :meth:`to_record` gave."""
        try:
            values = dict(record)
            window, whole = Sums(**values.pop("window")), Sums(**values.pop("whole"))
            history = [from_record(epoch) for epoch in values.pop("history")]
            return cls(**values, window=window, whole=whole, history=history)
        except (KeyError, TypeError) as error:
            raise DataError(f"a checkpoint of another version; {error}") from None
