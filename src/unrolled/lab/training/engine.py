"""The training engine: any task, from a corpus to a run folder, safe to interrupt at any moment.

All that a training is made of is in its checkpoints, and all that is random is drawn from generators whose states are
among it; so a training that goes on from a checkpoint makes the same steps that it would have made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.distributed import joined
from unrolled.lab.training.fingerprint import fingerprint
from unrolled.lab.training.initial_vectors import begin_with
from unrolled.lab.training.rng_state import seed_all, seeded
from unrolled.lab.training.run_folder import Run, RunConfig, check_destination, is_finished, load_config, load_run
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Split, Task
from unrolled.lab.training.trainer import Trainer

__all__ = ["resume", "train"]

_SPLITS = ("train", "dev", "test")


def train(
    task: Task[Any, Any],
    corpus: Corpus[Any],
    settings: TrainingSettings,
    folder: Path,
    *,
    data: DataSettings,
    force: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Train a model and measure it on the test split.

    Everything random comes from ``settings.seed``; the caller's generators are left as they were. Under ``torchrun``
    the processes learn together, and the first one writes.

    Args:
        task: what is learned, made for this corpus.
        corpus: three splits.
        settings: how.
        folder: the run folder to write; its parents are made.
        data: where the corpus comes from, so that it can be found again.
        force: whether an earlier run may be replaced.
        callback: sees it go by.

    Returns:
        The run, with the weights of its best epoch on dev.

    Raises:
        UsageError: when the settings do not fit the task or the machine, what measures need is not installed, or the
            folder holds an earlier run.
        DataError: when a split is empty, or holds what the task cannot learn from.
        FileError: when the folder cannot be written, or the disk is full; the last checkpoint is whole then.
        DivergedError: when a number is no longer finite; the last checkpoint is from before that.
        StoppedError: on SIGTERM, after the step under way, once that is saved. Ctrl-C is a KeyboardInterrupt likewise.
    """
    callback = callback or Callback()
    _check_installed(task)
    with joined(settings.device) as processes, seeded(settings.seed):
        if processes.first:
            check_destination(folder, force)
        splits = _encode(task, corpus)
        sizes = {name: len(splits[name]) for name in _SPLITS}
        mark = fingerprint(settings.batch, splits["train"], splits["dev"])
        plan = RunConfig(task, settings, data.anywhere(), sizes, mark, processes.count)
        model = task.build()
        if settings.vectors is not None:
            callback.on_message(begin_with(settings.vectors, task, model))
        trainer = Trainer(plan, model, splits, folder, processes, callback)
        if processes.rank:
            seed_all(settings.seed + processes.rank)  # rows of one batch are not to be dropped out alike
        trainer.begin()
        return trainer.run()


def resume(
    folder: Path,
    corpus: Corpus[Any],
    *,
    task_class: type[Task[Any, Any]] | None = None,
    callback: Callback | None = None,
) -> Run:
    """Go on with a training that was interrupted, from its last whole checkpoint.

    On the same machine and a CPU it ends with the same weights and the same log, bit by bit, as if it had not been
    interrupted.

    Args:
        folder: the run folder.
        corpus: the one it was begun with.
        task_class: the class of its task; found by its name in ``unrolled.lab.tasks`` when left out.
        callback: sees it go by.

    Returns:
        The run; at once when its training is over.

    Raises:
        FileError: when there is no such folder, or it cannot be read or written.
        DataError: when it is no run of ours, has no whole checkpoint, or the corpus is another one.
        UsageError: when it was begun by another number of processes, or what measures need is not installed.
        DivergedError: as :func:`train`.
        StoppedError: likewise.
    """
    callback = callback or Callback()
    if is_finished(folder):
        return load_run(folder, task_class)
    plan = load_config(folder, task_class)
    settings = plan.settings
    _check_installed(plan.task)
    with joined(settings.device) as processes, seeded(settings.seed):
        if processes.count != plan.processes:
            raise UsageError(f"{processes.count} processes came; expected the {plan.processes} that began {folder}")
        splits = _encode(plan.task, corpus)
        if fingerprint(settings.batch, splits["train"], splits["dev"]) != plan.fingerprint:
            sizes = ", ".join(f"{size:,} {name}" for name, size in plan.sizes.items())
            raise DataError(
                f"the corpus {corpus.name!r} is not the one that {folder} was begun with ({sizes} examples)"
            )
        trainer = Trainer(plan, plan.task.build(), splits, folder, processes, callback)
        trainer.restore()
        return trainer.run()


def _check_installed(task: Task[Any, Any]) -> None:
    """Find out what is not installed before an epoch has been spent on it."""
    for measure in task.metrics:
        if measure.requires is not None:
            measure.requires()


def _encode(task: Task[Any, Any], corpus: Corpus[Any]) -> dict[str, Split[Any]]:
    splits = {}
    for name in _SPLITS:
        try:
            splits[name] = task.encode(getattr(corpus, name))
        except DataError as error:
            raise DataError(f"{corpus.name}, {name}: {error}") from None
    return splits
