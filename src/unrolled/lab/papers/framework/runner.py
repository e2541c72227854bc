"""Run the trials of an experiment that have no result yet, one after the other."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from unrolled.errors import StoppedError
from unrolled.lab.papers.framework.experiment import Experiment, Result, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.result_store import ResultStore, versions
from unrolled.lab.training.environment import describe_machine
from unrolled.lab.training.run_lock import InUseError, RunLock

__all__ = ["OTHER_PROCESS", "PAUSE", "Progress", "collect", "run_experiment", "run_trial"]


_SPENT = "seconds"
"""The file of a trial's folder that holds how long its runs without a result took; a killed one leaves none."""
PAUSE = 5.0
"""Seconds between two looks at trials that another process holds up."""
OTHER_PROCESS = "another process runs it, or trains a network of it"


class Progress(Protocol):
    """Shows what an experiment does while it runs."""

    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        """Show that a trial begins, or that its result was found."""

    def say(self, line: str) -> None:
        """Show a line of the trial's own."""


class _Silent:
    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        pass

    def say(self, line: str) -> None:
        pass


def collect(experiment: Experiment, scale: Scale, store: ResultStore) -> list[Result]:
    """Return the stored results of an experiment, in the order of its trials."""
    found = (store.find(experiment, scale, trial) for trial in experiment.at(scale))
    return [result for result in found if result is not None]


def run_experiment(
    experiment: Experiment,
    scale: Scale,
    store: ResultStore,
    *,
    command: str,
    data: Path | None = None,
    progress: Progress | None = None,
) -> Sequence[Result]:
    """Run the trials that have no result, store each result at once, and return the results of all trials.

    Args:
        experiment: Its trials are run.
        scale: Which of its trials.
        store: Holds the results so far, and gets the new ones.
        command: The command line that new results record.
        data: The folder of the datasets; None for the one that the environment names.
        progress: Receives every trial before it runs; None shows nothing.
    """
    shown, results = progress or _Silent(), {}
    trials = experiment.at(scale)
    waiting: dict[int, InUseError] = {}

    def run(number: int) -> None:
        try:
            results[number] = run_trial(
                experiment, scale, trials[number - 1], store, command=command, data=data, say=shown.say
            )
            waiting.pop(number, None)
        except InUseError as error:
            if number not in waiting:
                shown.say(f"{OTHER_PROCESS}; it comes last")
            waiting[number] = error

    for number, trial in enumerate(trials, start=1):
        found = store.find(experiment, scale, trial)
        shown.trial(trial, number, len(trials), found is not None)
        if found:
            results[number] = found
        else:
            run(number)
    while waiting:
        free = [number for number, error in waiting.items() if not error.in_use]
        if free:  # the other process has stored what it made, or has ended without it
            run(free[0])
        else:
            time.sleep(PAUSE)
    return [results[number] for number in sorted(results)]


def run_trial(
    experiment: Experiment,
    scale: Scale,
    trial: Trial,
    store: ResultStore,
    *,
    command: str,
    data: Path | None = None,
    say: Callable[[str], object] = str,
) -> Result:
    """Run one trial, or continue it where it was interrupted, and store its result with the seconds of all its runs.

    InUseError if another process runs it, or trains a network that it shares. What another one has stored in the
    meantime is returned.
    """
    folder = store.work_folder(experiment, scale, trial)
    lock = RunLock.acquire_new(folder)
    try:
        if stored := store.find(experiment, scale, trial):
            shutil.rmtree(folder, ignore_errors=True)
            return stored
        before, spent = _seconds_before(folder), folder / _SPENT
        began, found = time.perf_counter(), versions()  # at the beginning: a checkout may change while a trial runs
        try:
            values = _run(experiment, trial, TrialSetup(folder, data, store.networks, say))
        finally:
            with suppress(OSError):  # it must not hide why the trial ended
                spent.write_text(f"{before + time.perf_counter() - began:.1f}", encoding="utf-8")
        result = Result(
            trial=trial,
            values=values,
            seconds=before + time.perf_counter() - began,
            when=datetime.now(UTC).date().isoformat(),
            command=command,
            machine=describe_machine(),
            versions=found,
        )
        store.keep(experiment, scale, result)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()
    return result


def _run(experiment: Experiment, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
    """Run a trial; where it is interrupted, do not name the run of the engine within it, by which no trial goes on."""
    try:
        return experiment.run(trial, setup)
    except KeyboardInterrupt as stop:  # without a text the command names itself
        raise type(stop) from None
    except StoppedError:
        raise StoppedError("interrupted; give the same command again to continue") from None


def _seconds_before(folder: Path) -> float:
    """Return how long a trial ran before; none if a process died while it wrote that."""
    try:
        return float((folder / _SPENT).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return 0.0
