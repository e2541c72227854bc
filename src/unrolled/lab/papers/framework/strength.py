"""Which items have been run at strength, and how many hours the others lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles

from unrolled.lab.papers.framework.budget_queue import Job, list_jobs
from unrolled.lab.papers.framework.experiment import Experiment, Scale
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.table import MISSING, markdown_table

__all__ = ["strength_section"]

_RULE = """\
An item is at strength when one seed of all of its trials has run at scale day: the source's own models, on all of its
data that is available, trained until the dev score stops improving, for at most the epochs or steps that the item
sets. An item that has no scale day is at strength at scale cpu: it needs no training, or its data are generated, or
it uses all of them already. `ours/faithfulness` and `ours/interactions` compare methods on networks of their own and
count too; their pages say on which part of the data these were trained. Hours are estimates for one core,
from measured steps; those of further seeds are counted apart. A trial whose network another one has trained takes much
less.
A training whose best dev score is that of its last epoch might have learned more in further ones. The column "best in
last epoch" counts these among the trainings of one seed that record their best epoch; items of which none does have a
dash."""
_COLUMNS = (
    "item",
    "scale",
    "trials of one seed",
    "further seeds",
    "best in last epoch",
    "hours missing",
    "of further seeds",
    "at strength",
)
_ENOUGH = 20
"""Trials to speak of tenths."""


def strength_section(experiments: Iterable[Experiment], store: ResultStore) -> Iterator[str]:
    """Give the parts of the section: rule, count, and a table with a row for each item and one for all."""
    listed = [_Strength.of(each, store) for each in experiments]
    reached = sum(each.reached for each in listed)
    first, further = (sum(each.hours[place] for each in listed) for place in (0, 1))
    yield "## What is at strength"
    yield _RULE
    yield f"{reached} of {len(listed)} items are at strength. {_accuracy_of_estimates(listed)}".strip()
    every = ["all", *[""] * 4, _shown(first), _shown(further), f"{reached} of {len(listed)}"]
    yield markdown_table(_COLUMNS, [*(each.row for each in listed), every])


@dataclass(frozen=True)
class _Strength:
    """What an item has run at its strongest scale."""

    experiment: Experiment
    scale: Scale
    first: Sequence[Job]
    """The trials of first seeds."""
    further: Sequence[Job]
    store: ResultStore

    @classmethod
    def of(cls, experiment: Experiment, store: ResultStore) -> _Strength:
        scale: Scale = "day" if "day" in experiment.scales else "cpu"
        jobs = list_jobs([experiment], scale, store)
        first, further = ([job for job in jobs if job.trial.of_first_seed is wanted] for wanted in (True, False))
        return cls(experiment, scale, first, further, store)

    @property
    def reached(self) -> bool:
        return all(job.done for job in self.first)

    @property
    def hours(self) -> tuple[float, float]:
        """The hours that first and further seeds lack."""
        first, further = (sum(job.hours for job in jobs if not job.done) for jobs in (self.first, self.further))
        return first, further

    def times_their_estimates(self) -> Iterator[float]:
        """Divide the time of each trial of scale day that ran by its estimate."""
        for job in (*self.first, *self.further) if self.scale == "day" else ():
            if (found := self.store.find(self.experiment, self.scale, job.trial)) is not None:
                yield found.seconds / 3600 / job.hours

    @property
    def row(self) -> list[str]:
        return [
            f"`{self.experiment.name}`",
            self.scale,
            _counted(self.first),
            _counted(self.further) if self.further else MISSING,
            _best_in_last_epoch(self.first, self.scale, self.store),
            *map(_shown, self.hours),
            "yes" if self.reached else "no",
        ]


def _accuracy_of_estimates(listed: Sequence[_Strength]) -> str:
    ratios = [ratio for each in listed for ratio in each.times_their_estimates()]
    if len(ratios) < _ENOUGH:
        return ""
    tenths = quantiles(ratios, n=10)
    return (
        f"Of the {len(ratios):,} trials of scale day that ran, the median took {tenths[4]:.2f} times its estimate, and "
        f"four fifths took {tenths[0]:.2f} to {tenths[-1]:.1f} times."
    )


def _shown(hours: float) -> str:
    return f"{hours:.1f}" if hours else MISSING


def _best_in_last_epoch(jobs: Sequence[Job], scale: Scale, store: ResultStore) -> str:
    """Count the trainings that stopped while dev still improved, among those that record their best epoch."""
    found = [store.find(job.experiment, scale, job.trial) for job in jobs if job.done]
    trained = [each for each in found if each is not None and {"best_epoch", "epochs"} <= each.values.keys()]
    last = sum(each["best_epoch"] == each["epochs"] for each in trained)
    return f"{last} of {len(trained)}" if trained else MISSING


def _counted(jobs: Sequence[Job]) -> str:
    done = sum(job.done for job in jobs)
    return f"{done}" if done == len(jobs) else f"{done} of {len(jobs)}"
