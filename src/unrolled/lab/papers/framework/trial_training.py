"""Training inside a trial: a run of the engine in the trial's own room, which goes on from where it was stopped.

What several trials open is trained once and kept on the archive's shelf, under a name made of all that decides it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from unrolled.errors import DivergedError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.papers.framework.experiment import Bench
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.callbacks import Callback, Epoch
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import Run, load_run
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Task

__all__ = ["figures", "full_settings", "learn", "learn_and_measure", "learn_once", "learn_task"]


class _Saying(Callback):
    """Says one line an epoch."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Say how the epoch went."""
        dev = "  ".join(f"{name} {value:.4f}" for name, value in epoch.dev.items())
        mark = "  best so far" if epoch is best else ""
        self.bench.say(f"epoch {epoch.number}  loss {epoch.loss:.4f}  dev {dev}  {seconds:.0f} s{mark}")


def learn(
    bench: Bench,
    task: str,
    corpus: Corpus[Any],
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    *,
    name: str = "run",
) -> Run:
    """Train a model for a task.

    Args:
        bench: of the trial; a run that was stopped there goes on.
        task: a member of ``unrolled.lab.tasks``.
        corpus: what is learned.
        model: the settings of its architecture that differ from the task's own.
        training: the training settings that differ from the task's own.
        name: of the run within the trial.

    Returns:
        The run, measured on dev and test.
    """
    kind = TASKS.get(task)
    return learn_task(
        bench,
        kind.from_corpus(corpus, kind.Architecture(**model)),
        corpus,
        {**kind.training_defaults, **training},
        name=name,
    )


def learn_task(
    bench: Bench, task: Task[Any, Any], corpus: Corpus[Any], training: Mapping[str, Any], *, name: str = "run"
) -> Run:
    """Train a model for a task that need not be a member of the catalogue.

    Args:
        bench: of the trial; a run that was stopped there goes on.
        task: what is learned, and how it is measured.
        corpus: from what.
        training: the training settings that differ from the engine's own.
        name: of the run within the trial.

    Returns:
        The run, measured on dev and test.
    """
    folder, callback = bench.room / name, _Saying(bench)
    if folder.exists():
        return resume(folder, corpus, task_class=type(task), callback=callback)
    settings = TrainingSettings(**training)
    return train(task, corpus, settings, folder, data=DataSettings(data=(corpus.name,)), callback=callback)


def learn_once(
    bench: Bench, task: str, corpus: Corpus[Any], model: Mapping[str, Any], training: Mapping[str, Any]
) -> Run:
    """Train a model for a task, unless another trial has: the same settings on the same data give the same network.

    Args:
        bench: of the trial; the network is kept on its shelf.
        task: a member of ``unrolled.lab.tasks``.
        corpus: what is learned.
        model: the settings of its architecture that differ from the task's own.
        training: the training settings that differ from the task's own.

    Returns:
        The run, measured on dev and test.
    """
    kind = TASKS.get(task)
    decisive = {
        "task": task,
        "corpus": [corpus.name, _content(corpus)],
        "architecture": kind.Architecture(**model).model_dump(mode="json"),
        "training": TrainingSettings(**{**kind.training_defaults, **training}).model_dump(mode="json"),
    }
    key = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]
    place = bench.shelf / f"{task}-{key}"
    if not place.exists():
        run = learn(bench, task, corpus, model, training, name=key)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            run.folder.rename(place)
        except OSError:  # another process trained the same and was first
            shutil.rmtree(run.folder)
    return load_run(place)


def _content(corpus: Corpus[Any]) -> str:
    """Digest what is learned from and chosen on."""
    total = hashlib.sha256()
    for split in (corpus.train, corpus.dev):
        for example in split:
            total.update(repr(example).encode())
        total.update(b"|")
    return total.hexdigest()


def figures(run: Run) -> dict[str, float]:
    """Give what a run came to, in JSON's types.

    Args:
        run: a finished one.

    Returns:
        Its measures on dev and test, epochs, seconds and parameters.
    """
    return {name: float(value) for name, value in run.metrics.items()}


def learn_and_measure(
    bench: Bench,
    task: str,
    corpus: Corpus[Any],
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    measure: Callable[[Run], dict[str, Any]] = figures,
) -> dict[str, Any]:
    """Train a model as :func:`learn` does and measure the run; if it diverges, the result says why, and no more."""
    try:
        return measure(learn(bench, task, corpus, model, training))
    except DivergedError as error:
        return {"diverged": str(error).partition(";")[0]}  # without the advice and the path of the run


def full_settings(task: str, model: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give all settings of ``model`` and ``training`` in JSON types, the task's defaults included."""
    kind = TASKS.get(task)
    return {
        "model": kind.Architecture(**model).model_dump(mode="json"),
        "training": TrainingSettings(**{**kind.training_defaults, **training}).model_dump(mode="json"),
    }
