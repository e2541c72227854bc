"""An experiment: the trials of one published table or figure, and a report of their results.

The trials are independent of each other. Each result is stored as soon as its trial ends, so an experiment can be
stopped at any time and continues where it was.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from unrolled.lab.papers.framework.table import Number, Table, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.lab.training.callbacks import Callback

__all__ = [
    "SCALES",
    "SPLITS",
    "Experiment",
    "Report",
    "Result",
    "Scale",
    "Trial",
    "TrialSetup",
    "average",
    "dev_test_rows",
    "pick",
    "settings_of",
    "training_cell",
    "where",
]


Scale = Literal["smoke", "cpu", "day", "paper"]
SCALES: dict[Scale, str] = {
    "smoke": "made-up data, seconds: checks that the code runs",
    "cpu": "real data where the item needs it; at most about forty minutes of one core for most items, hours for a few",
    "day": "minutes to days of one core; the papers' own models and data as far as they are available",
    "paper": "the paper's own sizes, for a GPU",
}
"""How large an experiment is, from the smallest scale to the largest."""
SPLITS = ("dev", "test")
"""The splits on which a training is measured: one chooses its best epoch, and one had no influence on it."""


@dataclass(frozen=True)
class Trial:
    """One run of an experiment: everything that decides its outcome."""

    label: str
    """Shown while it runs."""
    settings: Mapping[str, Any]
    """JSON types only; includes the seed where there is one."""

    def key(self, experiment: str, version: int) -> str:
        """Digest what decides the outcome: the experiment, its version and the settings in any order."""
        decisive = json.dumps([experiment, version, dict(self.settings)], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(decisive.encode()).hexdigest()[:16]

    @property
    def seed(self) -> object:
        """The seed among the settings, or among those of the training; None where there is none."""
        return self.settings.get("seed", self.settings.get("training", {}).get("seed"))

    @property
    def of_first_seed(self) -> bool:
        """Whether its seed is 0, or it has none."""
        return self.seed in (0, None)


@dataclass(frozen=True)
class Result:
    """A trial that has run."""

    trial: Trial
    values: Mapping[str, Any]
    """What was measured; JSON types only."""
    seconds: float
    when: str
    """The day, ISO 8601."""
    command: str
    machine: str
    versions: Mapping[str, str]
    """Of Python and the packages. ``commit`` is that of the code; where it is not known, or not part of the history,
    ``recorded`` is the commit that added the result, whose code may be later than what ran."""

    def __getitem__(self, name: str) -> Any:
        """Return one of the values."""
        return self.values[name]


def where(results: Iterable[Result], **settings: Any) -> list[Result]:
    """Select the results whose trials have these settings."""
    wanted = settings.items()
    return [result for result in results if all(result.trial.settings[name] == value for name, value in wanted)]


def pick(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of some settings that a trial has."""
    return {name: settings[name] for name in names if name in settings}


@dataclass(frozen=True)
class TrialSetup:
    """The folders that a trial uses, and its log."""

    folder: Path
    """For this trial alone. It survives an interruption, so a training continues from its checkpoint."""
    data: Path | None
    """The folder of the datasets; when None, the environment variable ``UNROLLED_DATA``."""
    networks: Path
    """The folder of trained networks that several trials share; see ``trial_training.train_once``."""
    log: Callable[[str], object] = field(default=str)
    """Shows a line of progress; the default shows nothing."""
    listener: Callback | None = None
    """Is told of every step of the trial's trainings."""


@dataclass(frozen=True)
class Report:
    """What the results of an experiment show."""

    tables: Sequence[Table]
    """The published numbers of the first one decide the verdict, unless the experiment makes claims."""
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    """How to draw each figure, by its file name without a suffix."""
    captions: Mapping[str, str] = field(default_factory=dict)
    """What the lines, bands and bars of a figure are, by the figure's name; every figure with bands has one."""


class Experiment(ABC):
    """One published table or figure, or a question of our own; each is a file in ``unrolled.lab.papers``."""

    name: ClassVar[str]
    """PAPER/ITEM, as ``unrolled reproduce`` takes it."""
    title: ClassVar[str]
    source: ClassVar[str]
    """The table or figure of a paper; or a note that the question is our own."""
    version: ClassVar[int] = 1
    """Raise it whenever the same settings no longer give the same result."""
    scales: ClassVar[tuple[Scale, ...]] = ("smoke", "cpu", "paper")
    """The scales at which it has trials."""
    usual_hours: ClassVar[float] = 0.1
    """Estimated hours of a trial on one core."""
    day_hours_by: ClassVar[tuple[str, Mapping[Any, float]] | None] = None
    """The setting that the hours of a trial of scale day depend on, and the hours by its value; of a value that is not
    among them the usual hours."""
    headline: ClassVar[tuple[str, ...] | None] = None
    """Row and column, in the first table, of the number that the summary shows; by default the first comparison.

    Of several rows before the column the first that the scale has is shown.
    """
    compared_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of the first table whose published numbers decide the verdict; all columns if empty."""
    published: ClassVar[bool] = True
    """Whether the numbers in brackets are published; False where they are an earlier measurement of our own."""

    @abstractmethod
    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trials of one of :attr:`scales`, the most informative first: an experiment may be stopped.

        The list is frozen: what is added to the library later must not add trials to a recorded experiment.
        """

    def at(self, scale: Scale) -> Sequence[Trial]:
        """List the trials of any scale: none where the scale is not one of :attr:`scales`."""
        return self.trials(scale) if scale in self.scales else ()

    def hours(self, trial: Trial, scale: Scale) -> float:
        """Estimate the hours that a trial takes on one core."""
        return self.day_hours(trial) if scale == "day" else self.usual_hours

    def day_hours(self, trial: Trial) -> float:
        """Estimate the hours that a trial of scale day takes on one core."""
        if self.day_hours_by is None:
            return self.usual_hours
        setting, hours = self.day_hours_by
        return hours.get(trial.settings[setting], self.usual_hours)

    def worth(self, trial: Trial) -> float:
        """Return how many numbers of the tables a trial gives: below 1 where several trials give one number."""
        return 1.0

    def with_vectors(self, trial: Trial, file: str, size: int) -> Trial | None:
        """Let a trial begin with other pretrained word vectors, ``size`` numbers each; None if it begins with none."""
        return None

    @abstractmethod
    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Run one trial and return what was measured, in JSON types."""

    @abstractmethod
    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare the results with what was published.

        Args:
            results: Results of the trials that have run, in the order of :meth:`trials`; some may be missing.
            scale: The scale at which they ran.

        Returns:
            Tables and figures.
        """

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """List statements of the source, and whether the results agree; if there are any, they decide the verdict.

        A statement is None, and not tested, if it is about what networks have learned and none of ours has learned.
        """
        return {}

    def key(self, trial: Trial) -> str:
        """Return the key under which the result of a trial is stored."""
        return trial.key(self.name, self.version)

    @cached_property
    def paper(self) -> str:
        """The first half of the name."""
        return self.name.partition("/")[0]


def settings_of(item: type[Experiment], scale: Scale, **wanted: Any) -> list[Mapping[str, Any]]:
    """List the settings of the trials of an item that have these among theirs; none at a scale that it has not."""
    listed = (trial.settings for trial in item().at(scale))
    return [settings for settings in listed if wanted.items() <= dict(settings).items()]


def average(
    results: Sequence[Result],
    name: str,
    theirs: float | None = None,
    *,
    digits: int = 2,
    percent: bool = False,
    unit: Literal["", "nats", "bits"] = "",
) -> Number:
    """Average a value over the results that have it: a training that diverged has none."""
    ours = [float(result[name]) for result in results if name in result.values]
    return Number(ours, theirs, digits, percent, unit=unit)


def training_cell(
    results: Sequence[Result], name: str, theirs: float | None, *, digits: int = 1, percent: bool = False
) -> str | Number:
    """Average a value over trainings that may diverge, ours or the published one; no results mean that none ran."""
    return cell(average(results, name, theirs, digits=digits, percent=percent), ran=bool(results))


def dev_test_rows(
    results: Sequence[Result],
    published: Mapping[str, Sequence[float | None]],
    columns: Sequence[Mapping[str, Any]],
    metric: str,
    *,
    percent: bool = False,
) -> list[Sequence[str | Number]]:
    """Make a row for each model that ran: a metric on dev and test of each column's settings.

    The published numbers stand in the order of the cells, in percent if ``percent``, while our values are shares.
    """
    rows: list[Sequence[str | Number]] = []
    for model, numbers in published.items():
        if where(results, model=model):
            cells = [
                training_cell(
                    where(results, model=model, **column),
                    f"{split}_{metric}",
                    number / 100 if number and percent else number,
                    percent=percent,
                )
                for (column, split), number in zip(product(columns, SPLITS), numbers, strict=False)
            ]
            rows.append((model, *cells))
    return rows
