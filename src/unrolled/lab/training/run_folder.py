"""Run folders: a training and its results on disk, as JSON and safetensors.

- ``config.json``: format and version, the task, the architecture, the training settings, the data; and the threads,
  the processor and the versions of the libraries;
- ``task.json``: the vocabulary and the labels;
- ``data.json``: the checksums of the data;
- ``checkpoints``: the state of the training, optimiser and random number generators included;
- ``log.jsonl``, ``log.csv``, ``times.jsonl``: the course of the training;
- and after its end ``weights.safetensors``, those of the best epoch; ``README.md``, the model card; and
  ``metrics.json``.

JSON files and weights carry checksums. Readers take no lock: they read again when the training has written on, or has
ended, while they read.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from unrolled.errors import DataError, FileError
from unrolled.lab.training.callbacks import Epoch
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.logs import read_history
from unrolled.lab.training.model_tensors import load_tensors
from unrolled.lab.training.rng_state import seeded
from unrolled.lab.training.run_config import load_config
from unrolled.lab.training.run_files import (
    read_metrics,
    read_text,
    read_weights,
    required_file,
)
from unrolled.lab.training.run_names import CHECKPOINTS, CONFIG, LOG, METRICS, WEIGHTS, is_finished, was_replaced
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Task
from unrolled.lab.training.trained_model import TrainedModel
from unrolled.lab.training.training_state import TrainingState

__all__ = ["Run", "load_run"]

_MOST_READS, _PAUSE = 100, 0.02
"""How often a folder that changes is read, and the seconds in between."""


@dataclass(frozen=True, repr=False)
class Run(TrainedModel):
    """A trained model with its task, settings, metrics and log."""

    task: Task[Any, Any]
    """The task, with its vocabularies and labels; ``task.architecture`` holds the settings of the model."""
    model: nn.Module
    """The model with the weights of the best epoch, on the CPU, in evaluation mode."""
    settings: TrainingSettings
    data: DataSettings
    """The data; ``data.reload_corpus`` loads the corpus again."""
    metrics: Mapping[str, float]
    """The task's metrics on dev and test, such as ``dev_accuracy``; sizes, and times in seconds."""
    history: tuple[Epoch, ...]
    folder: Path
    unfinished: str = ""
    """Where a training that has not ended was at its newest checkpoint, as ``step 19, in epoch 1 of 3,000``."""

    def __repr__(self) -> str:
        name = f"dev_{self.task.metrics[0].name}"
        said = {
            "folder": str(self.folder),
            "task": self.task.name,
            "data": self.data.title,
            "encoder": self.task.architecture.encoder,
            "epochs": len(self.history),
            name: float(f"{self.metrics[name]:.4g}"),
            "finished": not self.unfinished,
        }
        return f"Run({', '.join(f'{key}={value!r}' for key, value in said.items())})"

    @property
    def warning(self) -> str:
        """What to know before this run is used: that its training has not ended; else empty."""
        if not self.unfinished:
            return ""
        best = next(epoch.number for epoch in reversed(self.history) if epoch.best)
        return (
            f"the training of {self.folder} has not ended ({self.unfinished}): these are the weights of epoch {best}, "
            f"the best so far; if it is not running, go on with: unrolled resume {shlex.quote(str(self.folder))}"
        )


def load_run(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> Run:
    """Load a run. If its training has not ended, load it as of its best epoch so far.

    Args:
        folder: The run folder.
        task_class: The class of its task; by default the member of ``unrolled.lab.tasks`` with its name.

    Returns:
        The run.

    Raises:
        FileError: If the folder does not exist, or a file cannot be read.
        DataError: If it is not a run folder, no epoch has ended, or a file is missing, damaged, or does not fit the
            other files.
    """
    for _ in range(_MOST_READS):
        before = _state_of(folder)
        try:
            run = _load(folder, task_class)
        except (DataError, FileError, FileNotFoundError):
            if _state_of(folder) == before and not was_replaced(folder):
                raise
        else:
            if _state_of(folder)[0] == before[0]:  # it is one training, and not one that was replaced in between
                return run
        time.sleep(_PAUSE)
    return _load(folder, task_class)


def _load(folder: Path, task_class: type[Task[Any, Any]] | None) -> Run:
    config = load_config(folder, task_class)
    with seeded(0):  # the random weights are overwritten; the caller's generators keep their states
        model = config.task.build()
    unfinished = ""
    if is_finished(folder):
        metrics = read_metrics(folder, METRICS, checksum=config.checked)
        log = required_file(folder, LOG)
        history = read_history(log, read_text(log))
        if len(history) != metrics["epochs"]:
            raise DataError(f"{log}: has {len(history)} epochs; expected {metrics['epochs']}, as {METRICS} says")
        path = required_file(folder, WEIGHTS)
        weights = read_weights(path, checksum=config.checked)
    else:
        state, path, weights = _best_so_far(folder)
        metrics = {f"dev_{name}": value for name, value in state.best_epoch.dev.items()}
        history = tuple(state.history)
        unfinished = f"step {state.step:,}, in epoch {state.epoch:,} of {config.settings.epochs:,}"
    load_tensors(model, weights, path)
    model.eval()
    return Run(config.task, model, config.settings, config.data, metrics, history, folder, unfinished)


_State = tuple[tuple[int, int, int] | None, tuple[str, ...]]


def _state_of(folder: Path) -> _State:
    """Return which folder this is, and what a training changes in it: the names of checkpoints, and its end."""
    try:
        status = (folder / CONFIG).stat()
        identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
    except OSError:
        return None, ()
    return identity, tuple(sorted(name for place in (folder / CHECKPOINTS, folder) for name in _names_in(place)))


def _names_in(folder: Path) -> list[str]:
    """List the names in a folder; none if it is not there, or goes while it is listed."""
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _best_so_far(folder: Path) -> tuple[TrainingState, Path, dict[str, Tensor]]:
    """Read the state and the best weights of an unfinished training from its newest checkpoint."""
    if not (folder / CHECKPOINTS).is_dir():
        raise DataError(f"{folder}: the run folder lacks both {METRICS} and {CHECKPOINTS}: it is incomplete")
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    state = TrainingState.from_record(checkpoints.newest(lambda _: None)[1])
    if state.best is None:
        raise DataError(f"{folder}: no epoch has ended yet (step {state.step}); resume the training first")
    return state, checkpoints.folder / state.best, checkpoints.load_best(state.best)
