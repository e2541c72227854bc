"""Create a run folder, replace an earlier one, and write the results at the end.

A folder is written beside its place under another name, ``.NAME.partial``, and then renamed, so it never exists without
its first checkpoint. Whoever holds the lock of that hidden folder may rename or replace; it stays the run's lock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path

from torch import Tensor

from unrolled.atomic_write import atomic_write, sync_folder
from unrolled.errors import FileError, UsageError
from unrolled.lab.training.environment import Environment
from unrolled.lab.training.run_config import RunConfig, is_run
from unrolled.lab.training.run_files import read_json, to_json, weights_content
from unrolled.lab.training.run_lock import LOCK, RunLock
from unrolled.lab.training.run_names import (
    CARD,
    CHECKPOINTS,
    CONFIG,
    METRICS,
    TASK,
    WEIGHTS,
    partial_name,
    replaced_name,
    was_replaced,
)

__all__ = [
    "check_destination",
    "create_run_folder",
    "drop_replaced",
    "finish_run_folder",
    "put_back_replaced",
    "record_resumption",
]


def check_destination(folder: Path, force: bool = False) -> None:
    """Check, before hours of training, that a run can be written to ``folder``."""
    if folder.exists() or folder.is_symlink():
        if not is_run(folder):
            raise FileError(f"{folder} already exists and is not a run folder: choose another name")
        if not force:
            raise UsageError(f"{folder} already exists: choose another --out, or pass --force to overwrite it")
    parent = next(place for place in folder.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise FileError(f"{folder} cannot be written: {parent} is not a folder with write permission")


def create_run_folder(folder: Path, config: RunConfig, force: bool, fill: Callable[[Path], None]) -> RunLock:
    """Create a run folder, and return its lock; an earlier run is replaced only once the new one is complete.

    Args:
        folder: The run folder, without symbolic links.
        config: What it holds from the beginning.
        force: Whether to replace an earlier run.
        fill: Writes the first checkpoint into the folder that it is given.
    """
    partial, replaced = partial_name(folder), replaced_name(folder)
    try:
        lock = RunLock.acquire_new(partial, folder)
        try:
            _remove_rest(partial)
            _put_back(folder, replaced)
            check_destination(folder, force)
            (partial / CHECKPOINTS).mkdir()
            atomic_write(partial / CONFIG, to_json(config.to_record(folder)), durable=True)
            atomic_write(partial / TASK, to_json(config.task.to_record()), durable=True)
            fill(partial)
            _move_to_place(partial, folder, replaced)
        except BaseException:
            _put_back(folder, replaced)
            shutil.rmtree(partial, ignore_errors=True)
            lock.release()
            raise
        lock.renamed(folder)
        try:
            sync_folder(folder.parent)
            shutil.rmtree(replaced, ignore_errors=True)
        except BaseException:
            lock.release()
            raise
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return lock


def finish_run_folder(folder: Path, weights: Mapping[str, Tensor], card: str, metrics: Mapping[str, float]) -> None:
    """Write the results of a training; the metrics are last, since their file marks the end of the training."""
    atomic_write(folder / WEIGHTS, weights_content(weights), durable=True)
    atomic_write(folder / CARD, card.encode(errors="backslashreplace"), durable=True)
    finite = {name: value if isfinite(value) else None for name, value in metrics.items()}
    atomic_write(folder / METRICS, to_json(finite), durable=True)


def record_resumption(folder: Path, environment: Environment) -> None:
    """Add the environment of a resumed training to ``config.json``, beside that in which it was started."""
    config = read_json(folder, CONFIG, checksum=False)
    resumed = [*config.get("resumed", []), environment.to_record()]
    atomic_write(folder / CONFIG, to_json({**config, "resumed": resumed}), durable=True)


def put_back_replaced(folder: Path) -> None:
    """Put an earlier run back that was being replaced when the training was killed, if there is one."""
    folder = folder.resolve()
    if folder.exists() or not was_replaced(folder):
        return
    partial, replaced = partial_name(folder), replaced_name(folder)
    try:
        lock = RunLock.acquire_new(partial, folder)
        try:
            _put_back(folder, replaced)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            lock.release()
    except OSError as error:
        raise FileError(f"{folder}: cannot be put back from {replaced}: {error.strerror or error}") from None


def drop_replaced(folder: Path) -> None:
    """Remove the earlier run that the one in a folder has replaced, if its training was stopped before that.

    Else it would be put back when the user removes that one. This process has the lock of the folder.
    """
    shutil.rmtree(replaced_name(folder.resolve()), ignore_errors=True)


def _remove_rest(partial: Path) -> None:
    """Remove what a killed training left, but not the lock."""
    for path in partial.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _put_back(folder: Path, replaced: Path) -> None:
    if replaced.exists() and not folder.exists():
        replaced.rename(folder)


def _move_to_place(partial: Path, folder: Path, replaced: Path) -> None:
    if folder.exists():
        earlier = RunLock.acquire(folder)
        try:
            shutil.rmtree(replaced, ignore_errors=True)
            folder.rename(replaced)
        finally:
            earlier.release()
    partial.rename(folder)
