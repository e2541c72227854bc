"""What an experiment is: trials to run, and what is to be said of their results.

A published table or figure is one file that holds the published numbers. Its trials are independent of each other and
each is kept as soon as it has been run, so an experiment can be stopped at any time and goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from unrolled.lab.papers.framework.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCALES", "Bench", "Experiment", "Report", "Result", "Scale", "Trial", "where"]

Scale = Literal["smoke", "cpu", "paper"]
SCALES: dict[Scale, str] = {
    "smoke": "made-up data, seconds: does every line of it run?",
    "cpu": "real data where the item is not of generated ones; some forty minutes of one core at most, but for tasks",
    "paper": "the paper's own sizes, for a GPU",
}
"""How large an experiment is to be."""


@dataclass(frozen=True)
class Trial:
    """One run of an experiment, with all that decides its outcome."""

    label: str
    """What a progress line calls it."""
    settings: Mapping[str, Any]
    """JSON's types alone; the seed is among them where there is one."""

    def key(self, experiment: str, version: int) -> str:
        """Name the trial by what decides its outcome.

        Args:
            experiment: whose trial it is.
            version: of the experiment's code.

        Returns:
            Sixteen hexadecimal digits, the same for the same settings in any order.
        """
        decisive = json.dumps([experiment, version, dict(self.settings)], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(decisive.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Result:
    """A trial that has been run."""

    trial: Trial
    values: Mapping[str, Any]
    """What was measured; JSON's types alone."""
    seconds: float
    when: str
    """The day, ISO 8601."""
    command: str
    machine: str
    versions: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        """Give one of the values."""
        return self.values[name]


def where(results: Iterable[Result], **settings: Any) -> list[Result]:
    """Pick results by the settings of their trials.

    Args:
        results: some.
        **settings: what the trials' settings are to be.

    Returns:
        Those whose trials have all of them, in their order.
    """
    asked = settings.items()
    return [result for result in results if all(result.trial.settings[name] == value for name, value in asked)]


@dataclass(frozen=True)
class Bench:
    """Where a trial works."""

    room: Path
    """A folder of its own, kept for a trial that was stopped: a training goes on from its checkpoint there."""
    data: Path | None
    """Where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when None."""
    shelf: Path
    """A folder of trained networks that several trials open; see ``learning.learn_once``."""
    say: Callable[[str], object] = field(default=str)
    """Shows a line of progress; by default nobody sees it."""


@dataclass(frozen=True)
class Report:
    """What is to be said of an experiment."""

    tables: Sequence[Table]
    """The first of them is compared with the published numbers, unless there are ``claims``."""
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    """How to draw each figure, by the name of its file without a suffix."""
    claims: Mapping[str, bool] = field(default_factory=dict)
    """What the source states, in words, and whether it holds here; the verdict is theirs if there are any."""


class Experiment(ABC):
    """One published table or figure, or a question of our own; each is a file in ``unrolled.lab.papers``."""

    name: ClassVar[str]
    """PAPER/ITEM, as ``unrolled reproduce`` takes it."""
    title: ClassVar[str]
    source: ClassVar[str]
    """Which table or figure of which paper; or that the question is ours."""
    version: ClassVar[int] = 1
    """Raised whenever the same settings would no longer give the same result."""

    @abstractmethod
    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List what is to be run.

        Args:
            scale: how large.

        Returns:
            The trials, the most telling first: an experiment may be stopped.
        """

    @abstractmethod
    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Run one trial.

        Args:
            trial: one of :meth:`trials`.
            bench: where it works.

        Returns:
            What was measured, in JSON's types.
        """

    @abstractmethod
    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Lay the results beside what was published.

        Args:
            results: of the trials that have been run, in the order of :meth:`trials`; some may be missing.
            scale: theirs.

        Returns:
            Tables, figures and claims.
        """

    @cached_property
    def paper(self) -> str:
        """The first half of the name."""
        return self.name.partition("/")[0]
