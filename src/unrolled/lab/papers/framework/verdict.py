"""The verdict on an item: do the results agree with what was published?

An item is compared by the claims that its report lists or, without claims, by the published numbers of its first table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unrolled.lab.papers.framework.experiment import Experiment, Report
from unrolled.lab.papers.framework.table import POINTS, SHARE, Number

__all__ = ["RULES", "Comparison", "compare", "headline", "verdict"]

RULES = f"""\
1. An item that lists claims of its source is compared by these claims. Any other item is compared by the published
   numbers of its first table.
2. A number agrees if it is within {POINTS:g} percentage points of the published one (numbers in percent) or within
   {100 * SHARE:g} % of it (all other numbers). Means over seeds are compared. A training that diverged does not agree.
3. *reproduced*: everything that was compared agrees; *partly*: at least half of it; *not reproduced*: less than half.
4. What has not been run is not compared; the column "trials" says how much was run. *not run*: no trial at any scale
   above smoke.
5. *nothing to compare*: the question is our own, or the source gives neither numbers nor claims.

A verdict holds for its scale only. At scale cpu trainings are much shorter than the papers', so published numbers are
rarely reached there; orders of models and signs of scores can be."""
"""The rules, in words; a reader can apply them by hand."""


@dataclass(frozen=True)
class Comparison:
    """One claim or number, and whether the results agree with it."""

    what: str
    agrees: bool


def compare(experiment: Experiment, report: Report) -> list[Comparison]:
    """Compare the claims of a report or, without claims, the published numbers of its first table."""
    if report.claims or not experiment.published:
        return [Comparison(claim, holds) for claim, holds in report.claims.items()]
    return [
        Comparison(f"{row}, {column}: {number}", number.agrees)
        for table in report.tables[:1]
        for row, column, number in table.numbers()
        if number.agrees is not None
    ]


def verdict(comparisons: Sequence[Comparison]) -> str:
    """Judge by the share of comparisons that agree."""
    if not comparisons:
        return "nothing to compare"
    agreeing = sum(each.agrees for each in comparisons)
    if agreeing == len(comparisons):
        return "reproduced"
    return "partly" if 2 * agreeing >= len(comparisons) else "not reproduced"


def headline(experiment: Experiment, report: Report) -> tuple[str, Number] | None:
    """Return the name and value of the number that the summary shows, or None where the first table has none."""
    for row, column, number in report.tables[0].numbers():
        if (row, column) == experiment.headline or (experiment.headline is None and number.agrees is not None):
            return f"{row}, {column}", number
    return None
