"""Names in and around a run folder: its files, where it is written first, and where an earlier run is meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.training.run_lock import LOCK

__all__ = [
    "CARD",
    "CHECKPOINTS",
    "CONFIG",
    "DATA",
    "LOG",
    "LOG_TABLE",
    "METRICS",
    "TASK",
    "TIMES",
    "WEIGHTS",
    "files_of_run",
    "is_finished",
    "partial_name",
    "replaced_name",
    "was_replaced",
]

CONFIG = "config.json"
TASK = "task.json"
CHECKPOINTS = "checkpoints"
WEIGHTS = "weights.safetensors"
METRICS = "metrics.json"
DATA = "data.json"
LOG = "log.jsonl"
LOG_TABLE = "log.csv"
TIMES = "times.jsonl"
CARD = "README.md"


def files_of_run(folder: Path) -> Iterator[Path]:
    """Yield the files that a run consists of, also those that its training has yet to write."""
    for name in (CONFIG, TASK, DATA, LOG, LOG_TABLE, TIMES, WEIGHTS, METRICS, CARD, LOCK):
        yield folder / name
    yield from (folder / CHECKPOINTS).glob("*")


def is_finished(folder: Path) -> bool:
    """Tell whether the training of a run has ended: whether its metrics are written."""
    return (folder / METRICS).is_file()


def partial_name(folder: Path) -> Path:
    """Return where a run folder is written until its first checkpoint is complete."""
    return folder.with_name(f".{folder.name}.partial")


def replaced_name(folder: Path) -> Path:
    """Return where an earlier run is for the moment in which it is replaced."""
    return folder.with_name(f".{folder.name}.replaced")


def was_replaced(folder: Path) -> bool:
    """Tell whether an earlier run is there: it is being replaced, or the training that replaced it was killed."""
    return os.path.isdir(replaced_name(folder.resolve()))  # noqa: PTH112  # False for a name that is too long
