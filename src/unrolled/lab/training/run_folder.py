"""Run folders: a training and its results on disk, as JSON and safetensors.

- ``config.json``: format and version, the task, the architecture, the training settings, the data, and the versions of
  the libraries;
- ``task.json``: the vocabulary and the labels;
- ``checkpoints``: the state of the training, optimiser and random number generators included;
- ``log.jsonl``, ``log.csv``, ``times.jsonl``: the course of the training;
- and after its end ``weights.safetensors``, those of the best epoch; ``README.md``, the model card; and
  ``metrics.json``.

A folder is written beside its place under another name and then renamed, so it never exists without its first
checkpoint.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from unrolled.atomic_write import atomic_write, sync_folder
from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.models.factory import EncoderSettings
from unrolled.lab.settings import Settings
from unrolled.lab.training.callbacks import Epoch
from unrolled.lab.training.checkpoints import Checkpoints, load_tensors
from unrolled.lab.training.logs import LOG, read_history
from unrolled.lab.training.run_files import read_json, read_metrics, read_text, read_weights, required_file, to_json
from unrolled.lab.training.settings import DataSettings, TrainingSettings
from unrolled.lab.training.task import Task
from unrolled.lab.training.training_state import TrainingState, seeded
from unrolled.registry import Registry

__all__ = [
    "CHECKPOINTS",
    "Run",
    "RunConfig",
    "check_destination",
    "create_run_folder",
    "finish_run_folder",
    "is_finished",
    "load_config",
    "load_run",
]

CHECKPOINTS = "checkpoints"
_FORMAT = "unrolled-run"
_VERSION = 2
_CONFIG = "config.json"
_TASK = "task.json"
_WEIGHTS = "weights.safetensors"
_METRICS = "metrics.json"
_CARD = "README.md"
_TASKS: Registry[Task[Any, Any]] = Registry("unrolled.lab.tasks", Task, "task")  # type: ignore[type-abstract]  # members are concrete
C = TypeVar("C", bound=Settings)


@dataclass(frozen=True)
class RunConfig:
    """Everything a run folder holds before the training starts."""

    task: Task[Any, Any]
    settings: TrainingSettings
    data: DataSettings
    sizes: Mapping[str, int]
    """Number of examples of each split."""
    fingerprint: str
    """Digest of the data; a resumed training checks that they have not changed."""
    processes: int = 1
    """Size of the process group."""


@dataclass(frozen=True)
class Run:
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


def check_destination(folder: Path, force: bool = False) -> None:
    """Check, before hours of training, that a run can be written to ``folder``."""
    if folder.exists():
        if not _is_run(folder):
            raise FileError(f"{folder} already exists and is not a run folder: choose another name")
        if not force:
            raise UsageError(f"{folder} already exists: choose another --out, or pass --force to overwrite it")
    parent = next(place for place in folder.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise FileError(f"{folder} cannot be written: {parent} is not a folder with write permission")


@contextmanager
def create_run_folder(folder: Path, config: RunConfig) -> Iterator[Path]:
    """Create a run folder; an earlier one is replaced only once the new one is complete.

    Yields a folder beside ``folder``, with the configuration in it, that is renamed to ``folder`` at the end.
    """
    folder = folder.resolve()
    partial, replaced = (folder.with_name(f".{folder.name}.{state}") for state in ("partial", "replaced"))
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "task": config.task.name,
        "data": config.data.model_dump(mode="json"),
        "examples": dict(config.sizes),
        "fingerprint": config.fingerprint,
        "processes": config.processes,
        "architecture": config.task.architecture.model_dump(mode="json"),
        "training": config.settings.model_dump(mode="json"),
        "versions": {
            **{name: version(name) for name in ("unrolled", "torch", "numpy", "safetensors")},
            "python": platform.python_version(),
        },
    }
    try:
        shutil.rmtree(partial, ignore_errors=True)  # left by a training that was killed
        (partial / CHECKPOINTS).mkdir(parents=True)
        atomic_write(partial / _CONFIG, to_json(record), durable=True)
        atomic_write(partial / _TASK, to_json(config.task.to_record()), durable=True)
        yield partial
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error.strerror or error}") from None
    finally:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def finish_run_folder(folder: Path, weights: Mapping[str, Tensor], card: str, metrics: Mapping[str, float]) -> None:
    """Write the results of a training; the metrics are last, since their file marks the end of the training."""
    atomic_write(folder / _WEIGHTS, to_bytes(dict(weights)), durable=True)
    atomic_write(folder / _CARD, card.encode(), durable=True)
    finite = {name: value if isfinite(value) else None for name, value in metrics.items()}
    atomic_write(folder / _METRICS, to_json(finite), durable=True)


def is_finished(folder: Path) -> bool:
    """Tell whether the training of a run has ended: whether its metrics are written."""
    return (folder / _METRICS).is_file()


def load_config(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> RunConfig:
    """Read the configuration of a run folder; see :func:`load_run` for the arguments and errors."""
    if not folder.exists():
        raise FileError(f"no run folder {folder}; give a folder that `unrolled train` wrote")
    config = _read_config(folder)
    path = folder / _CONFIG
    try:
        task_class = task_class or _TASKS.get(str(config["task"]))
        architecture: EncoderSettings = task_class.Architecture(**config["architecture"])
        settings = TrainingSettings(**config["training"])
        sizes = {str(name): int(size) for name, size in config["examples"].items()}
        data = DataSettings(**config["data"])
        fingerprint, processes = str(config["fingerprint"]), int(config["processes"])
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: task, data, examples, architecture or training is missing or wrong; {error!r}"
        ) from None
    fields = read_json(folder, _TASK)
    try:
        task = task_class.from_record(fields, architecture)
    except UnrolledError as error:
        raise DataError(f"{folder / _TASK}: {error}") from None
    return RunConfig(task, settings, data, sizes, fingerprint, processes)


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
    config = load_config(folder, task_class)
    with seeded(0):  # the random weights are overwritten; the caller's generators keep their states
        model = config.task.build()
    if is_finished(folder):
        metrics = read_metrics(folder, _METRICS)
        log = required_file(folder, LOG)
        history = read_history(log, read_text(log))
        if len(history) != metrics["epochs"]:
            raise DataError(f"{log}: has {len(history)} epochs; expected {metrics['epochs']}, as {_METRICS} says")
        path = required_file(folder, _WEIGHTS)
        weights = read_weights(path)
    else:
        state, path, weights = _best_so_far(folder)
        metrics = {f"dev_{name}": value for name, value in state.best_epoch.dev.items()}
        history = tuple(state.history)
    load_tensors(model, weights, path)
    model.eval()
    return Run(config.task, model, config.settings, config.data, metrics, history, folder)


def _best_so_far(folder: Path) -> tuple[TrainingState, Path, dict[str, Tensor]]:
    """Read the state and the best weights of an unfinished training from its newest checkpoint."""
    if not (folder / CHECKPOINTS).is_dir():
        raise DataError(f"{folder}: the run folder lacks both {_METRICS} and {CHECKPOINTS}: it is incomplete")
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    state = TrainingState.from_record(checkpoints.newest(lambda _: None)[1])
    if state.best is None:
        raise DataError(f"{folder}: no epoch has ended yet (step {state.step}); resume the training first")
    return state, checkpoints.folder / state.best, checkpoints.load_best(state.best)


def _is_run(folder: Path) -> bool:
    try:
        found = read_json(folder, _CONFIG)
    except (DataError, FileError):
        return False
    return found.get("format") == _FORMAT


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise DataError(f"{folder} is not a run folder: it has no {_CONFIG}")
    config = read_json(folder, _CONFIG)
    if config.get("format") != _FORMAT:
        raise DataError(f'{path} is not the configuration of a run: "format" is not "{_FORMAT}"')
    if config.get("version") != _VERSION:
        raise DataError(f"{path} has version {config.get('version')!r}; this release reads version {_VERSION}")
    return config
