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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.settings import Settings
from unrolled.lab.training.callbacks import Epoch
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.environment import Environment
from unrolled.lab.training.logs import read_history
from unrolled.lab.training.model_tensors import load_tensors
from unrolled.lab.training.rng_state import seeded
from unrolled.lab.training.run_files import (
    read_json,
    read_metrics,
    read_text,
    read_unchecked_json,
    read_weights,
    required_file,
)
from unrolled.lab.training.run_names import CHECKPOINTS, CONFIG, LOG, METRICS, TASK, WEIGHTS, is_finished, was_replaced
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.stored_paths import abbreviate, expand
from unrolled.lab.training.task import Task
from unrolled.lab.training.trained_model import TrainedModel
from unrolled.lab.training.training_state import TrainingState
from unrolled.named_sources import check_no_file
from unrolled.registry import Registry

__all__ = ["Run", "RunConfig", "is_run", "load_config", "load_run"]

_FORMAT = "unrolled-run"
_VERSION = 3
_UNCHECKED = 2
"""The earlier version, whose files have no checksums."""
_TASKS: Registry[Task[Any, Any]] = Registry("unrolled.lab.tasks", Task, "task")  # type: ignore[type-abstract]  # members are concrete
C = TypeVar("C", bound=Settings)

_MOST_READS, _PAUSE = 100, 0.02
"""How often a folder that changes is read, and the seconds in between."""


@dataclass(frozen=True)
class RunConfig:
    """Everything a run folder holds before the training starts."""

    task: Task[Any, Any]
    settings: TrainingSettings
    data: DataSettings
    sizes: Mapping[str, int]
    """Number of examples of each split."""
    processes: int = 1
    """Size of the process group."""
    environment: Environment = field(default_factory=Environment.of_this_process)
    """Where the training was started."""
    fingerprint: str = ""
    """Of a run of an earlier version: the digest of a sample of its data."""
    checked: bool = True
    """Whether the files of the run have checksums; those of earlier versions have none."""

    def to_record(self, folder: Path) -> dict[str, Any]:
        """Return the content of ``config.json`` of a run that is started in ``folder``, without symbolic links."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "task": self.task.name,
            "folder": abbreviate(str(folder)),
            "data": self.data.renamed(abbreviate).model_dump(mode="json"),
            "examples": dict(self.sizes),
            "processes": self.processes,
            "architecture": self.task.architecture.model_dump(mode="json"),
            "training": self.settings.renamed(abbreviate).model_dump(mode="json"),
            **self.environment.to_record(),
        }


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


def load_config(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> RunConfig:
    """Read the configuration of a run folder; see :func:`load_run` for the arguments and errors."""
    if not folder.exists():
        if was_replaced(folder):
            raise FileError(
                f"no run folder {folder}: its replacement was interrupted; `unrolled resume` puts the earlier run back"
            )
        raise FileError(f"no run folder {folder}; give a folder that `unrolled train` wrote")
    config = _read_config(folder)
    path = folder / CONFIG
    try:
        task_class = task_class or _TASKS.get(str(config["task"]))
        architecture: EncoderSettings = task_class.Architecture(**config["architecture"])
        settings = TrainingSettings(**config["training"]).renamed(expand)
        sizes = {str(name): int(size) for name, size in config["examples"].items()}
        data = DataSettings(**config["data"]).renamed(expand)
        if (started := config.get("folder")) is not None:
            data = data.of_run(Path(expand(str(started))), folder.resolve())
        fingerprint, processes = str(config.get("fingerprint", "")), int(config["processes"])
        environment = Environment.from_record(config)
    except (UsageError, DataError) as error:
        raise DataError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: task, data, examples, architecture or training is missing or wrong; {error!r}"
        ) from None
    checked = config["version"] == _VERSION
    fields = read_json(folder, TASK, checksum=checked)
    try:
        task = task_class.from_record(fields, architecture)
    except UnrolledError as error:
        raise DataError(f"{folder / TASK}: {error}") from None
    return RunConfig(task, settings, data, sizes, processes, environment, fingerprint, checked)


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


def is_run(folder: Path) -> bool:
    """Tell whether a folder has the configuration of a run."""
    try:
        found = read_unchecked_json(folder, CONFIG)
    except (DataError, FileError):
        return False
    return found.get("format") == _FORMAT


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    check_no_file(folder)
    if not path.is_file():
        raise DataError(f"{folder} is not a run folder: it has no {CONFIG}")
    config = read_unchecked_json(folder, CONFIG)
    if config.get("format") != _FORMAT and "model_type" in config:
        names = config.get("architectures")
        name = str(names[0]) if isinstance(names, list) and names else "AutoModel"
        raise DataError(
            f"{folder} is a model of transformers ({config['model_type']}), not a run folder; in Python, "
            f"transformers.{name}.from_pretrained loads it, and unrolled.account or unrolled.explain opens it"
        )
    if config.get("format") != _FORMAT:
        raise DataError(f'{path} is not the configuration of a run: "format" is not "{_FORMAT}"')
    if config.get("version") not in (_UNCHECKED, _VERSION):
        raise DataError(
            f"{path} has version {config.get('version')!r}; this release reads versions {_UNCHECKED} and {_VERSION}"
        )
    return read_json(folder, CONFIG, checksum=config["version"] == _VERSION)
