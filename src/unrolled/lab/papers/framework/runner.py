"""Running an experiment: the trials that the archive lacks, one after the other."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from unrolled.lab.papers.framework.experiment import Bench, Experiment, Result, Scale, Trial
from unrolled.lab.papers.framework.provenance import describe_machine, versions
from unrolled.lab.papers.framework.result_store import Archive

__all__ = ["Onlooker", "collect", "run_experiment"]


class Onlooker(Protocol):
    """Whoever wants to see an experiment while it runs."""

    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        """Learn that a trial begins, or that it was found in the archive."""

    def say(self, line: str) -> None:
        """Learn what a trial says of itself."""


class _Silent:
    def trial(self, trial: Trial, number: int, total: int, found: bool) -> None:
        pass

    def say(self, line: str) -> None:
        pass


def collect(experiment: Experiment, scale: Scale, archive: Archive) -> list[Result]:
    """Gather the results that are there.

    Args:
        experiment: whose.
        scale: at which they were run.
        archive: where they lie.

    Returns:
        Those of the trials that have been run, in the order of the trials.
    """
    found = (archive.find(experiment, scale, trial) for trial in experiment.trials(scale))
    return [result for result in found if result is not None]


def run_experiment(
    experiment: Experiment,
    scale: Scale,
    archive: Archive,
    *,
    command: str,
    data: Path | None = None,
    onlooker: Onlooker | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Sequence[Result]:
    """Run what has not been run yet; every result is kept as soon as it is there.

    Args:
        experiment: what to run.
        scale: how large.
        archive: where results are kept and looked for.
        command: the command line that the results are to carry.
        data: where the datasets lie.
        onlooker: told of every trial.
        clock: counts seconds.

    Returns:
        The results of all trials.
    """
    watching, results = onlooker or _Silent(), []
    trials = experiment.trials(scale)
    for number, trial in enumerate(trials, start=1):
        found = archive.find(experiment, scale, trial)
        watching.trial(trial, number, len(trials), found is not None)
        if found is None:
            room = archive.path(experiment, scale, trial).with_suffix(".work")
            room.mkdir(parents=True, exist_ok=True)
            began = clock()
            values = experiment.run(trial, Bench(room, data, archive.networks, watching.say))
            found = Result(
                trial=trial,
                values=values,
                seconds=clock() - began,
                when=datetime.now(UTC).date().isoformat(),
                command=command,
                machine=describe_machine(),
                versions=versions(),
            )
            archive.keep(experiment, scale, found)
            shutil.rmtree(room, ignore_errors=True)  # its checkpoints are of no use any more
        results.append(found)
    return results
