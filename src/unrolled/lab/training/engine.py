"""Train a model for any task, from a corpus to a run folder; a training may be interrupted at any moment.

A checkpoint holds the whole state of a training, the states of all random number generators included. So a training
that resumes from a checkpoint makes the same steps as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.checksums import CorpusChecksums
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_check import check_data, write_checksums
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.distributed import ProcessGroup, process_group
from unrolled.lab.training.environment import Environment, threads
from unrolled.lab.training.initial_vectors import set_initial_vectors
from unrolled.lab.training.rng_state import seed_all, seeded
from unrolled.lab.training.run_config import RunConfig, load_config
from unrolled.lab.training.run_creation import (
    check_destination,
    drop_replaced,
    put_back_replaced,
    record_resumption,
)
from unrolled.lab.training.run_folder import Run, load_run
from unrolled.lab.training.run_lock import RunLock
from unrolled.lab.training.run_names import is_finished
from unrolled.lab.training.sample_check import check_sample
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Split, Task
from unrolled.lab.training.trainer import Trainer

__all__ = ["resume", "train"]


def train(
    task: Task[Any, Any],
    corpus: Corpus[Any],
    settings: TrainingSettings,
    folder: Path,
    *,
    data: DataSettings,
    files: Mapping[str, str] | None = None,
    force: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Train a model and evaluate it on the test split.

    ``settings.seed`` decides all random numbers; the caller's generators keep their states. Under ``torchrun`` the
    processes train together, and the main process writes the files.

    Args:
        task: The task, made for this corpus.
        corpus: Its train, dev and test splits.
        settings: How to train.
        folder: The run folder to write; missing parents are created.
        data: The names that load the corpus again, to resume or evaluate the run.
        files: The checksums of the files that the corpus was read from, by name; the run keeps them.
        force: Whether to replace an earlier run in ``folder``.
        callback: Receives the events of the training.

    Returns:
        The run, with the weights of the epoch that was best on dev.

    Raises:
        UsageError: If the settings do not fit the task or the machine, a package that a metric needs is not
            installed, or ``folder`` holds an earlier run or is being written by another process.
        DataError: If a split is empty, or the task cannot train on it.
        FileError: If the folder cannot be written, or the disk is full. The last checkpoint stays whole.
        DivergedError: If a loss, a gradient or a weight is not finite. The last checkpoint is from before that.
        StoppedError: After SIGTERM, once the current step has ended and is saved. Ctrl-C raises KeyboardInterrupt.
    """
    callback = callback or Callback()
    _check_installed(task)
    with process_group(settings.device) as group, seeded(settings.seed):
        group.in_main(lambda: check_destination(folder, force))
        splits = _encode(task, corpus)
        config = RunConfig(task, settings, data.with_absolute_paths(), _sizes(splits), group.world_size)
        model = task.build()
        if settings.vectors is not None:
            callback.on_message(set_initial_vectors(settings.vectors, task, model))
        trainer = Trainer(config, model, splits, folder, group, callback)
        if group.rank:
            seed_all(settings.seed + group.rank)  # so that the rows of one batch have dropout of their own
        with _held(trainer.begin(force, lambda place: write_checksums(place, CorpusChecksums.of(corpus, files or {})))):
            return trainer.run()


def resume(
    folder: Path,
    corpus: Corpus[Any],
    *,
    files: Mapping[str, str] | None = None,
    task_class: type[Task[Any, Any]] | None = None,
    callback: Callback | None = None,
    accept_changed_data: bool = False,
) -> Run:
    """Resume an interrupted training from its last checkpoint.

    On the CPU of the same machine it ends with the same weights and the same log as a training that was never
    interrupted, bit by bit.

    Args:
        folder: The run folder.
        corpus: The corpus with which the training was started.
        files: The checksums of the files that the corpus was read from, by name.
        task_class: The class of its task; by default the member of ``unrolled.lab.tasks`` with its name.
        callback: Receives the events of the training.
        accept_changed_data: Whether to go on with a corpus whose examples have changed; the run records it.

    Returns:
        The run. If its training has ended, nothing is trained.

    Raises:
        FileError: If the folder does not exist, or cannot be read or written.
        DataError: If it is not a run folder, every checkpoint is damaged, or the corpus is another one.
        UsageError: If another process writes the run, the number of processes differs, or a package that a metric
            needs is not installed.
        DivergedError: As in :func:`train`.
        StoppedError: As in :func:`train`.
    """
    callback = callback or Callback()
    put_back_replaced(folder)
    if is_finished(folder):
        return load_run(folder, task_class)
    config = load_config(folder, task_class)
    settings = config.settings
    _check_installed(config.task)
    with process_group(settings.device) as group, seeded(settings.seed):
        if group.world_size != config.processes:
            raise UsageError(
                f"{folder} was started with {config.processes} processes, but this is a group of {group.world_size}; "
                f"resume it with {config.processes}"
            )
        lock = group.in_main(lambda: RunLock.acquire(folder.resolve()))
        with ExitStack() as held:
            held.enter_context(_held(lock))
            if is_finished(folder):  # by the process that held the lock before
                return load_run(folder, task_class)
            group.in_main(lambda: drop_replaced(folder))
            held.enter_context(_same_environment(folder, config, group, callback))
            group.in_main(lambda: check_data(folder, corpus, files or {}, accept_changed_data, callback.on_message))
            splits = _encode(config.task, corpus)
            check_sample(folder, config, corpus, splits)
            config = replace(config, sizes=_sizes(splits))  # of data that have changed, where that was accepted
            trainer = Trainer(config, config.task.build(), splits, folder, group, callback)
            trainer.restore(lock)
            return trainer.run()


@contextmanager
def _same_environment(folder: Path, config: RunConfig, group: ProcessGroup, callback: Callback) -> Iterator[None]:
    """Compute with as many threads as before; say, and record, what else differs."""
    before, now = config.environment, Environment.of_this_process()
    with threads(before.threads) as same_threads:
        different = before.differences(now)
        if not same_threads:
            different += (f"{before.threads} threads before, {now.threads} now",)
        if different and group.is_main:
            callback.on_message(f"the last bits of the weights may differ: {'; '.join(different)}")
            record_resumption(folder, replace(now, threads=torch.get_num_threads()))
        elif before.threads not in (None, now.threads) and group.is_main:
            callback.on_message(f"computing with {before.threads} thread(s), as before, so that the result is the same")
        yield


@contextmanager
def _held(lock: RunLock | None) -> Iterator[None]:
    """Release the lock at the end."""
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _check_installed(task: Task[Any, Any]) -> None:
    """Import the packages that the metrics need, before an epoch is trained for nothing."""
    for metric in task.metrics:
        if metric.requires is not None:
            metric.requires()


def _sizes(splits: Mapping[str, Split[Any]]) -> dict[str, int]:
    return {name: len(split) for name, split in splits.items()}


def _encode(task: Task[Any, Any], corpus: Corpus[Any]) -> dict[str, Split[Any]]:
    encoded = {}
    for name, split in corpus.splits.items():
        try:
            encoded[name] = task.encode(split)
        except DataError as error:
            raise DataError(f"{corpus.name}, {name}: {error}") from None
    return encoded
