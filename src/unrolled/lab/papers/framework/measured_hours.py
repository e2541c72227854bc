"""How many hours an item takes on this machine, from the first steps of each of its trainings."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from unrolled.lab.data.data_folder import MissingDataError
from unrolled.lab.papers.framework.experiment import Experiment, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.table import MISSING, Number, Table
from unrolled.lab.papers.framework.time_limit import TimeIsUp, time_limit
from unrolled.lab.training.callbacks import Callback, Step
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

__all__ = ["estimate", "measured_hours"]

_WARM, _TIMED = 5, 25
_LONGEST = 10.0
"""Steps before the clock starts; steps that are timed, and the seconds after which fewer suffice."""
_PATIENCE = 120.0
"""Seconds after which a trial is given up in which no training has come so far."""
_HOUR = 3600.0  # seconds


class _Measured(Exception):  # noqa: N818  # no error: it ends a training that has told its speed
    def __init__(self, hours: float) -> None:
        super().__init__()
        self.hours = hours


class _Stopwatch(Callback):
    """Times some steps of the first training, then ends it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Keep the settings, which say how many steps there are."""
        self.settings = settings

    def on_step(self, step: Step) -> None:
        """Start the clock after the first steps; stop when enough are timed."""
        if step.number <= _WARM:
            self.began = self.clock()
            return
        timed, seconds = step.number - _WARM, self.clock() - self.began
        if timed >= _TIMED or seconds >= _LONGEST:
            raise _Measured(self.settings.most_steps(step.total) * seconds / timed / _HOUR)


def measured_hours(
    experiment: Experiment,
    trial: Trial,
    data: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> float | None:
    """Estimate the hours of a trial's first training, if it trains for all of its epochs.

    Runs the trial until its first training has made some steps; nothing is stored.

    Returns:
        The hours; None if the trial has no training of at least 30 steps, or did not come to it within two minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        setup = TrialSetup(Path(folder) / "trial", data, Path(folder) / "networks", listener=_Stopwatch(clock))
        setup.folder.mkdir()
        try:
            with time_limit(_PATIENCE):
                experiment.run(trial, setup)
        except _Measured as found:
            return found.hours
        except TimeIsUp:
            pass
    return None


def estimate(
    experiments: Sequence[Experiment], scale: Scale, data: Path | None, say: Callable[[str], object] = str
) -> Table:
    """Measure the trials of first seeds of each item, and tabulate what they and all seeds would take.

    Args:
        experiments: The items.
        scale: Which of their trials.
        data: The folder of the datasets; None for the one that ``UNROLLED_DATA`` names.
        say: Receives a line about each trial.
    """
    rows: list[Sequence[str | Number]] = []
    for experiment in experiments:
        trials = experiment.at(scale)
        first = [trial for trial in trials if trial.of_first_seed]
        hours = []
        for trial in first:
            try:
                found = measured_hours(experiment, trial, data)
                measured = "not measured" if found is None else f"{found:.2f} hours"
            except MissingDataError as error:
                found, measured = None, f"not measured: {error}"
            say(f"{experiment.name}, {trial.label}: {measured}")
            hours += [] if found is None else [found]
        if hours:
            whole = sum(hours) * len(first) / len(hours)
            cells = (Number([whole], digits=1), Number([whole * len(trials) / len(first)], digits=1))
            rows.append((experiment.name, f"{len(hours)} of {len(first)}", *cells))
        elif trials:
            rows.append((experiment.name, f"0 of {len(first)}", MISSING, MISSING))
    title = f"Hours of trainings at scale {scale} on this machine, if each runs for all of its epochs"
    return Table(title, ("item", "trainings measured", "one seed", "all seeds"), rows)
