"""Names in and around a run folder: its files, and where an earlier run is for the moment in which it is replaced."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = [
    "CARD",
    "CHECKPOINTS",
    "CONFIG",
    "METRICS",
    "TASK",
    "WEIGHTS",
    "is_finished",
    "replaced_name",
    "was_replaced",
]

CONFIG = "config.json"
TASK = "task.json"
CHECKPOINTS = "checkpoints"
WEIGHTS = "weights.safetensors"
METRICS = "metrics.json"
CARD = "README.md"


def is_finished(folder: Path) -> bool:
    """Tell whether the training of a run has ended: whether its metrics are written."""
    return (folder / METRICS).is_file()


def replaced_name(folder: Path) -> Path:
    """Return where an earlier run is for the moment in which it is replaced."""
    return folder.with_name(f".{folder.name}.replaced")


def was_replaced(folder: Path) -> bool:
    """Tell whether an earlier run is there: it is being replaced, or the training that replaced it was killed."""
    return os.path.isdir(replaced_name(folder.resolve()))  # noqa: PTH112  # False for a name that is too long
