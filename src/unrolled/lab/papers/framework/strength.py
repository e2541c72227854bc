"""Which items have been run at strength, and how many hours the others lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
count too; their pages say on which part of the data these were trained. Hours are estimates for one core; further
seeds are not counted in them.
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
    "at strength",
)


def strength_section(experiments: Iterable[Experiment], store: ResultStore) -> Iterator[str]:
    """Give the parts of the section: rule, count, and a table with a row for each item."""
    rows = [_row(each, store) for each in experiments]
    reached = sum(row[-1] == "yes" for row in rows)
    yield "## What is at strength"
    yield _RULE
    yield f"{reached} of {len(rows)} items are at strength."
    yield markdown_table(_COLUMNS, rows)


def _row(experiment: Experiment, store: ResultStore) -> list[str]:
    scale: Scale = "day" if "day" in experiment.scales else "cpu"
    jobs = list_jobs([experiment], scale, store)
    first, further = ([job for job in jobs if job.trial.of_first_seed is wanted] for wanted in (True, False))
    hours = sum(job.hours for job in first if not job.done)
    reached = all(job.done for job in first)
    return [
        f"`{experiment.name}`",
        scale,
        _counted(first),
        _counted(further) if further else MISSING,
        _best_in_last_epoch(first, scale, store),
        MISSING if reached else f"{hours:.1f}",
        "yes" if reached else "no",
    ]


def _best_in_last_epoch(jobs: list[Job], scale: Scale, store: ResultStore) -> str:
    """Count the trainings that stopped while dev still improved, among those that record their best epoch."""
    found = [store.find(job.experiment, scale, job.trial) for job in jobs if job.done]
    trained = [each for each in found if each is not None and {"best_epoch", "epochs"} <= each.values.keys()]
    last = sum(each["best_epoch"] == each["epochs"] for each in trained)
    return f"{last} of {len(trained)}" if trained else MISSING


def _counted(jobs: list[Job]) -> str:
    done = sum(job.done for job in jobs)
    return f"{done}" if done == len(jobs) else f"{done} of {len(jobs)}"
