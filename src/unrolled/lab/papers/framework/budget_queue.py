"""A queue of trials with a budget of hours: those that give most numbers for their time come first.

A trial that is stopped when the time is up continues where it was, so a long trial may take several budgets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unrolled.lab.data.data_folder import MissingDataError
from unrolled.lab.papers.framework.experiment import Experiment, Scale, Trial
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import OTHER_PROCESS, PAUSE, Progress, run_trial
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.time_limit import TimeIsUp, time_limit
from unrolled.lab.training.run_lock import InUseError

__all__ = ["Job", "list_jobs", "next_job", "remaining", "run_queue"]

_FURTHER_SEED = 0.25
"""The worth of a further seed, where the first has 1: it shows the deviation of a number that is known already."""
_HOUR = 3600.0  # seconds


@dataclass(frozen=True)
class Job:
    """A trial, its estimated hours on one core, and whether it has a result."""

    experiment: Experiment
    trial: Trial
    hours: float
    done: bool

    @property
    def key(self) -> str:
        """The key of its result, which no other experiment has."""
        return self.experiment.key(self.trial)

    @property
    def gain(self) -> float:
        """How many numbers of the tables it gives for an hour."""
        return self.experiment.worth(self.trial) * (1.0 if self.trial.of_first_seed else _FURTHER_SEED) / self.hours


def list_jobs(experiments: Iterable[Experiment], scale: Scale, store: ResultStore) -> list[Job]:
    """List the trials of a scale, with and without results, those with the largest gain first."""
    jobs = [
        Job(each, trial, each.hours(trial, scale), store.find(each, scale, trial) is not None)
        for each in experiments
        for trial in each.at(scale)
    ]
    return sorted(jobs, key=lambda job: -job.gain)


def next_job(jobs: Sequence[Job], hours: float) -> Job | None:
    """Choose the first job without a result that ends within these hours, or else the first one, or None."""
    left = [job for job in jobs if not job.done]
    return next((job for job in left if job.hours <= hours), left[0] if left else None)


def run_queue(
    experiments: Sequence[Experiment],
    scale: Scale,
    store: ResultStore,
    *,
    hours: float,
    command: str,
    progress: Progress,
    data: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """Run one trial after the other until the time is up, and return how many ended.

    The trial that is then running saves a checkpoint and stops between two steps. This works in the main thread only;
    in another thread the trial runs to its end. A trial whose data is not in the data folder is left out. A trial that
    another process runs, or a network of which it trains, is passed over until that process has ended it.

    Args:
        experiments: Their trials are run.
        scale: Which of their trials.
        store: Holds the results so far, and gets the new ones.
        hours: The budget.
        command: The command line that new results record.
        progress: Receives every trial before it runs.
        data: The folder of the datasets; None for the one that the environment names.
        clock: Returns seconds.

    Raises:
        MissingDataError: If no trial ends, and the data of one that is left is missing.
    """
    began, ended, left_out = clock(), 0, _LeftOut()
    while (left := hours - (clock() - began) / _HOUR) > 0:
        left_out.look_again()
        jobs = list_jobs(experiments, scale, store)
        job = next_job([each for each in jobs if each.key not in left_out], left)
        if job is None and left_out.in_use:
            time.sleep(min(PAUSE, _HOUR * left))
            continue
        if job is None:
            if not ended:
                left_out.raise_missing()
            break
        progress.trial(job.trial, sum(each.done for each in jobs) + 1, len(jobs), found=False)
        try:
            with time_limit(_HOUR * left):
                run_trial(job.experiment, scale, job.trial, store, command=command, data=data, say=progress.say)
            ended += 1
        except InUseError as error:
            progress.say(OTHER_PROCESS)
            left_out.in_use[job.key] = error
        except MissingDataError as error:
            progress.say(f"left out: {error}")
            left_out.missing[job.key] = error
        except TimeIsUp:
            progress.say("the time is up; the trial continues from here in the next run")
            break
    return ended


@dataclass
class _LeftOut:
    """The trials that cannot run, by their keys, and why."""

    in_use: dict[str, InUseError] = field(default_factory=dict)
    """For as long as another process runs them."""
    missing: dict[str, MissingDataError] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.in_use or key in self.missing

    def look_again(self) -> None:
        """Leave out no longer what another process has ended."""
        self.in_use = {key: error for key, error in self.in_use.items() if error.in_use}

    def raise_missing(self) -> None:
        """Raise the first error about missing data, if there is one."""
        for error in self.missing.values():
            raise error


def remaining(jobs: Iterable[Job]) -> Table:
    """Tabulate, for each experiment and for all, how many trials ran, how many are left, and their estimated hours."""
    by_name: dict[str, list[Job]] = {}
    for job in jobs:
        by_name.setdefault(job.experiment.name, []).append(job)
    rows = [(name, *_counts(mine)) for name, mine in sorted(by_name.items())]
    every = [job for mine in by_name.values() for job in mine]
    columns = ("item", "run", "left", "hours left", "of first seeds")
    return Table("What is left, in estimated hours of one core", columns, [*rows, ("all", *_counts(every))])


def _counts(jobs: Sequence[Job]) -> tuple[str, str, Number, Number]:
    left = [job for job in jobs if not job.done]
    hours, first = sum(job.hours for job in left), sum(job.hours for job in left if job.trial.of_first_seed)
    return f"{len(jobs) - len(left)}", f"{len(left)}", Number([hours], digits=1), Number([first], digits=1)
