"""Run folders: a training and what came of it on disk, as JSON and safetensors.

- ``config.json``: our mark and version, the task, what the model is made of, how it is trained, on what, and by which
  versions of the libraries;
- ``task.json``: what the task knows of the corpus: words, labels;
- ``checkpoints``: where the training stands, optimiser and generators included;
- ``log.jsonl``, ``log.csv``, ``times.jsonl``: how it went;
- and, when it is over, ``weights.safetensors``, those of the best epoch; ``README.md``, the model card; and
  ``metrics.json``, how well it does.

A folder is made beside its place under another name and then renamed, so it is there with its first checkpoint or not
at all.
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
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.logs import LOG, read_history
from unrolled.lab.training.rng_state import seeded
from unrolled.lab.training.run_files import present, read_metrics, read_object, read_text, read_weights, to_json
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.state_dicts import load_tensors
from unrolled.lab.training.task import Task
from unrolled.lab.training.training_state import TrainingState
from unrolled.registry import Registry

__all__ = [
    "CHECKPOINTS",
    "Run",
    "RunConfig",
    "begin_folder",
    "check_destination",
    "finish_folder",
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
    """What a run folder says before anything is trained."""

    task: Task[Any, Any]
    settings: TrainingSettings
    data: DataSettings
    """What is learned from: a dataset, or files."""
    sizes: Mapping[str, int]
    """How many examples each split has."""
    fingerprint: str
    """A digest of the data, which tells a training that goes on that it is still the same."""
    processes: int = 1
    """How many learn together."""


@dataclass(frozen=True)
class Run:
    """A trained model and all that is known of it."""

    task: Task[Any, Any]
    """With its vocabularies and labels; its ``architecture`` is what the model is made of."""
    model: nn.Module
    """With the weights of the best epoch, on the CPU, in eval mode."""
    settings: TrainingSettings
    data: DataSettings
    """What it was trained on: its corpus can be read again."""
    metrics: Mapping[str, float]
    """The task's measures on dev and test, as ``dev_accuracy``; sizes, and times in seconds."""
    history: tuple[Epoch, ...]
    folder: Path


def check_destination(folder: Path, force: bool = False) -> None:
    """Make sure, before hours of work, that a run can be kept in ``folder``."""
    if folder.exists():
        if not _is_run(folder):
            raise FileError(f"{folder} exists and is no run folder; expected a new name, or an earlier run to replace")
        if not force:
            raise UsageError(f"{folder} exists; expected a new name, or leave to replace the earlier run (--force)")
    parent = next(place for place in folder.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise FileError(f"{folder} cannot be written; expected {parent} to be a folder with leave to write")


@contextmanager
def begin_folder(folder: Path, plan: RunConfig) -> Iterator[Path]:
    """Make a run folder; an earlier one of this name is replaced when the new one is whole."""
    folder = folder.resolve()
    partial, replaced = (folder.with_name(f".{folder.name}.{state}") for state in ("partial", "replaced"))
    config = {
        "format": _FORMAT,
        "version": _VERSION,
        "task": plan.task.name,
        "data": plan.data.model_dump(mode="json"),
        "examples": dict(plan.sizes),
        "fingerprint": plan.fingerprint,
        "processes": plan.processes,
        "architecture": plan.task.architecture.model_dump(mode="json"),
        "training": plan.settings.model_dump(mode="json"),
        "versions": {
            **{name: version(name) for name in ("unrolled", "torch", "numpy", "safetensors")},
            "python": platform.python_version(),
        },
    }
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a training that was killed here
        (partial / CHECKPOINTS).mkdir(parents=True)
        atomic_write(partial / _CONFIG, to_json(config), durable=True)
        atomic_write(partial / _TASK, to_json(plan.task.to_record()), durable=True)
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


def finish_folder(folder: Path, weights: Mapping[str, Tensor], card: str, metrics: Mapping[str, float]) -> None:
    """Write what came of a training; the metrics come last, and say that it is over."""
    atomic_write(folder / _WEIGHTS, to_bytes(dict(weights)), durable=True)
    atomic_write(folder / _CARD, card.encode(), durable=True)
    finite = {name: value if isfinite(value) else None for name, value in metrics.items()}
    atomic_write(folder / _METRICS, to_json(finite), durable=True)


def is_finished(folder: Path) -> bool:
    """Say whether the training of a run is over."""
    return (folder / _METRICS).is_file()


def load_config(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> RunConfig:
    """Read what a run folder was begun with."""
    if not folder.exists():
        raise FileError(f"no run folder {folder}; expected one that `unrolled train` wrote")
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
        raise DataError(f"{path}: expected task, data, examples, architecture and training; {error!r}") from None
    fields = read_object(folder, _TASK)
    try:
        task = task_class.from_record(fields, architecture)
    except UnrolledError as error:
        raise DataError(f"{folder / _TASK}: {error}") from None
    return RunConfig(task, settings, data, sizes, fingerprint, processes)


def load_run(folder: Path, task_class: type[Task[Any, Any]] | None = None) -> Run:
    """Read a run; one whose training is not over is read as it stood at its best epoch.

    Args:
        folder: where it lies.
        task_class: the class of its task; found by its name in ``unrolled.lab.tasks`` when left out.

    Returns:
        The run.

    Raises:
        FileError: when there is no such folder, or a file cannot be read.
        DataError: when it is no run of ours, no epoch of it is over, or a file is missing, truncated or does not fit
            the others.
    """
    plan = load_config(folder, task_class)
    with seeded(0):  # the weights drawn here are overwritten; the caller's generator is not to notice
        model = plan.task.build()
    if is_finished(folder):
        metrics = read_metrics(folder, _METRICS)
        log = present(folder, LOG)
        history = read_history(log, read_text(log))
        if len(history) != metrics["epochs"]:
            raise DataError(f"{log}: expected a line for each of the {metrics['epochs']} epochs, found {len(history)}")
        path = present(folder, _WEIGHTS)
        weights = read_weights(path)
    else:
        state, path, weights = _best_so_far(folder)
        metrics = {f"dev_{name}": value for name, value in state.best_epoch.dev.items()}
        history = tuple(state.history)
    load_tensors(model, weights, path)
    model.eval()
    return Run(plan.task, model, plan.settings, plan.data, metrics, history, folder)


def _best_so_far(folder: Path) -> tuple[TrainingState, Path, dict[str, Tensor]]:
    """What the newest checkpoint knows of the best epoch."""
    if not (folder / CHECKPOINTS).is_dir():
        raise DataError(f"{folder}: the run folder lacks {_METRICS}; expected it, or {CHECKPOINTS}, beside {_CONFIG}")
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    state = TrainingState.from_record(checkpoints.newest(lambda _: None)[1])
    if state.best is None:
        raise DataError(f"{folder}: no epoch is over (step {state.step}); expected a training that has come further")
    return state, checkpoints.folder / state.best, checkpoints.load_best(state.best)


def _is_run(folder: Path) -> bool:
    try:
        found = read_object(folder, _CONFIG)
    except (DataError, FileError):
        return False
    return found.get("format") == _FORMAT


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise DataError(f"{folder} is no run folder; expected a folder with {_CONFIG} in it")
    config = read_object(folder, _CONFIG)
    if config.get("format") != _FORMAT:
        raise DataError(f'{path} is not ours; expected "format": "{_FORMAT}"')
    if config.get("version") != _VERSION:
        raise DataError(f"{path} has version {config.get('version')!r}; expected {_VERSION}")
    return config
