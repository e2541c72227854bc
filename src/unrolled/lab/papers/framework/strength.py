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
seeds are not counted in them."""
_COLUMNS = ("item", "scale", "trials of one seed", "further seeds", "hours missing", "at strength")


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
    first, further = ([job for job in jobs if job.of_first_seed is wanted] for wanted in (True, False))
    hours = sum(job.hours for job in first if not job.done)
    reached = all(job.done for job in first)
    return [
        f"`{experiment.name}`",
        scale,
        _counted(first),
        _counted(further) if further else MISSING,
        MISSING if reached else f"{hours:.1f}",
        "yes" if reached else "no",
    ]


def _counted(jobs: list[Job]) -> str:
    done = sum(job.done for job in jobs)
    return f"{done}" if done == len(jobs) else f"{done} of {len(jobs)}"
