"""Training inside a trial: a run of the engine in the trial's own folder, which continues after an interruption.

A network that several trials open is trained once and stored under a key made of everything that decides it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unrolled.errors import DivergedError
from unrolled.lab.data.checksums import CorpusChecksums
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.minute_lines import MinuteLines
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.callbacks import Callback, CallbackList, Epoch, Step
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.initial_vectors import find_vectors
from unrolled.lab.training.run_folder import Run, load_run
from unrolled.lab.training.run_lock import RunLock
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Task

__all__ = [
    "full_settings",
    "run_metrics",
    "train_and_measure",
    "train_model",
    "train_once",
    "train_task",
]


class _TrainingLog(Callback):
    """Logs one line an epoch, and one a minute within an epoch."""

    def __init__(self, setup: TrialSetup) -> None:
        self._lines = MinuteLines(setup.log)

    def on_step(self, step: Step) -> None:
        """Log how far the epoch is, once a minute."""
        self._lines.say_if_due(f"epoch {step.epoch}  loss {step.loss:.4f}  batch {step.done:,}/{step.total:,}")

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Log the losses and whether the epoch is the best so far."""
        dev = "  ".join(f"{name} {value:.4f}" for name, value in epoch.dev.items())
        mark = "  best so far" if epoch is best else ""
        self._lines.say(f"epoch {epoch.number}  loss {epoch.loss:.4f}  dev {dev}  {seconds:.0f} s{mark}")


def train_model(
    setup: TrialSetup,
    task: str | type[Task[Any, Any]],
    corpus: Corpus[Any],
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    *,
    name: str = "run",
) -> Run:
    """Train a model for a task, or continue the run that was interrupted, and return the finished run.

    Args:
        setup: Setup of the trial.
        task: A member of ``unrolled.lab.tasks``, or the class of another task.
        corpus: The corpus to train on.
        model: The settings of its architecture that differ from the task's defaults.
        training: The training settings that differ from the task's defaults.
        name: Name of the run within the trial.
    """
    kind = TASKS.get(task) if isinstance(task, str) else task
    built = kind.from_corpus(corpus, kind.Architecture(**model))
    return train_task(setup, built, corpus, {**kind.training_defaults, **training}, name=name)


def train_task(
    setup: TrialSetup, task: Task[Any, Any], corpus: Corpus[Any], training: Mapping[str, Any], *, name: str = "run"
) -> Run:
    """Train a model as :func:`train_model` does, for a task that need not be a member of ``unrolled.lab.tasks``."""
    folder, callback = setup.folder / name, CallbackList(*filter(None, (_TrainingLog(setup), setup.listener)))
    if folder.exists():
        return resume(folder, corpus, task_class=type(task), callback=callback)
    settings = TrainingSettings(**training)
    return train(task, corpus, settings, folder, data=DataSettings(data=(corpus.name,)), callback=callback)


def train_once(
    setup: TrialSetup, task: str, corpus: Corpus[Any], model: Mapping[str, Any], training: Mapping[str, Any]
) -> Run:
    """Train a model as :func:`train_model` does, unless another trial has trained the same one on the same data.

    InUseError if another process is training it now.
    """
    settings = full_settings(task, model, training)
    decisive = {
        "task": task,
        "corpus": [corpus.name, _content(corpus)],
        "architecture": settings["model"],
        "training": settings["training"],
    }
    if vectors := settings["training"]["vectors"]:
        decisive["vectors"] = _file_digest(find_vectors(Path(vectors), setup.data))
    key = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]
    place = setup.networks / f"{task}-{key}"
    if not place.exists():
        lock = RunLock.acquire_new(place.with_suffix(".lock"))
        try:
            if not place.exists():  # else another process has just trained it
                train_model(setup, task, corpus, model, training, name=key).folder.rename(place)
        finally:
            shutil.rmtree(lock.folder, ignore_errors=True)
            lock.release()
    return load_run(place)


def _content(corpus: Corpus[Any]) -> str:
    """Digest all splits, since a run has metrics on test as well, and the labels, which name its outputs."""
    record = CorpusChecksums.of(corpus, {}).to_record()
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_metrics(run: Run) -> dict[str, float]:
    """Return the metrics on dev and test, epochs, seconds and parameters of a run, in JSON types."""
    return {name: float(value) for name, value in run.metrics.items()}


def train_and_measure(
    setup: TrialSetup,
    task: str | type[Task[Any, Any]],
    corpus: Corpus[Any],
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    measure: Callable[[Run], dict[str, Any]] = run_metrics,
    train_with: Callable[..., Run] = train_model,
) -> dict[str, Any]:
    """Train a model by ``train_with`` and measure the run; a run that diverges gives the reason only."""
    try:
        return measure(train_with(setup, task, corpus, model, training))
    except DivergedError as error:
        return {"diverged": str(error).partition(";")[0]}  # without the advice and the path of the run


def full_settings(task: str, model: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give all settings of ``model`` and ``training`` in JSON types, the task's defaults included."""
    kind = TASKS.get(task)
    return {
        "model": kind.Architecture(**model).model_dump(mode="json"),
        "training": TrainingSettings(**{**kind.training_defaults, **training}).model_dump(mode="json"),
    }
