"""A callback that writes the log for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.training.callbacks import Callback, Epoch, Step
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

__all__ = ["TensorBoard"]


class TensorBoard(Callback):
    """Write the log to a folder for TensorBoard, an optional library that is imported only here.

    Raises:
        UsageError: If TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UsageError(
                "the setting tensorboard needs TensorBoard, which is not installed: pip install tensorboard"
            ) from None
        self._folder = folder
        self._open: Any = SummaryWriter
        self._writer: Any = None
        self._every = 1

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Open the folder, and hide what an interrupted training wrote after its last checkpoint."""
        self._every = settings.log_every
        self._writer = self._open(str(self._folder), purge_step=step + 1 if step else None)

    def on_step(self, step: Step) -> None:
        """Write a step, as often as the log does."""
        if step.number % self._every:
            return
        self._writer.add_scalar("train/loss", step.loss, step.number)
        self._writer.add_scalar("train/lr", step.lr, step.number)
        if step.norm is not None:
            self._writer.add_scalar("train/norm", step.norm, step.number)

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Write the metrics on dev."""
        for name, value in epoch.dev.items():
            self._writer.add_scalar(f"dev/{name}", value, epoch.step)

    def on_end(self) -> None:
        """Close the folder."""
        if self._writer is not None:
            self._writer.close()
