"""The verdict on an item: do the results agree with what was published?

An item is compared by its claims or conditions or, without them, by the published numbers of its first table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product

from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale
from unrolled.lab.papers.framework.table import POINTS, SHARE, Number

__all__ = ["VERDICT_RULES", "Comparison", "agreement", "compare", "headline", "is_complete", "tested", "verdict"]

VERDICT_RULES = f"""\
1. If an item lists claims of its source, or conditions that we set beforehand, we check these. Any other item is
   compared by the published numbers of its first table, or of those of its columns that the item's file names.
2. A number agrees if it is within {POINTS:g} percentage points of the published one (numbers in percent) or within
   {100 * SHARE:g} % of it (all other numbers). Bits per character and nats per word agree if their perplexities differ
   by a factor of at most {1 + SHARE:g}. Compared is the mean over the seeds whose training did not diverge; if
   all of them diverged, the number does not agree.
3. *reproduced*: everything that was compared agrees; *partly*: at least half of it; *not reproduced*: less than half.
4. What has not been run is not compared; the column "trials" says how much was run. While a trial of a first seed is
   missing, the item is at most *partly* reproduced. *not run*: no trial at any scale above smoke.
5. *nothing to compare*: the question is our own and sets no condition, the source gives neither numbers nor claims, the
   item's first table has no published number beside one of ours, or too few seeds were run to check a claim.
6. A training that learned nothing does not test a claim about what networks learn, and is left out; if none is left,
   the claim is *not tested*: it counts neither way, and the item is at most *partly* reproduced. A training has learned
   if it is right in a fifth of the cases in which a guess is wrong: in 60 % with two classes, in 40 % with four.

A verdict holds for its scale only. At scale cpu trainings are much shorter than the papers', so published numbers are
rarely reached there; but rankings of models and signs of scores can agree."""
"""The rules, in words; a reader can apply them by hand."""


@dataclass(frozen=True)
class Comparison:
    """One claim or number, and whether the results agree with it; None if they do not test it."""

    what: str
    agrees: bool | None


def compare(experiment: Experiment, results: Sequence[Result], report: Report) -> list[Comparison]:
    """Compare the claims of an experiment or, without claims, the published numbers of its first table."""
    claims = experiment.claims(results)
    if claims or not experiment.published:
        return [Comparison(claim, holds) for claim, holds in claims.items()]
    return [Comparison(f"{name}: {number}", bool(number.agrees)) for name, number in _compared(experiment, report)]


def tested(comparisons: Sequence[Comparison]) -> list[bool]:
    """Say of each comparison that the results test whether they agree."""
    return [each.agrees for each in comparisons if each.agrees is not None]


def verdict(comparisons: Sequence[Comparison], *, complete: bool) -> str:
    """Return the verdict by the share of tested comparisons that agree.

    With untested ones, or if the trials of first seeds are not ``complete``, it is at most *partly*.
    """
    found = tested(comparisons)
    if not found:
        return "nothing to compare"
    if all(found) and len(found) == len(comparisons) and complete:
        return "reproduced"
    return "partly" if 2 * sum(found) >= len(found) else "not reproduced"


def is_complete(experiment: Experiment, scale: Scale, results: Sequence[Result]) -> bool:
    """Say whether every trial of a first seed has a result."""
    ran = {result.trial.label for result in results}
    return all(trial.label in ran for trial in experiment.at(scale) if trial.of_first_seed)


def agreement(comparisons: Sequence[Comparison]) -> str:
    """Say how many comparisons agree, and how many are not tested."""
    found = tested(comparisons)
    rest = len(comparisons) - len(found)
    return f"{sum(found)} of {len(found)} comparisons agree" + (f", {rest} not tested" if rest else "")


def headline(experiment: Experiment, results: Sequence[Result], report: Report) -> tuple[str, Number] | None:
    """Return the name and value of the number that the summary shows, if there is one."""
    if experiment.headline is not None:
        *names, column = experiment.headline
        for wanted, row in product(names, report.tables[0].rows):
            cells = dict(zip(report.tables[0].columns, row, strict=True))
            if wanted in accumulate(map(str, row), "{}, {}".format) and isinstance(found := cells.get(column), Number):
                return f"{wanted}, {column}", found
        return None
    if not experiment.published or experiment.claims(results):
        return None
    return next(_compared(experiment, report), None)


def _compared(experiment: Experiment, report: Report) -> Iterator[tuple[str, Number]]:
    for row, column, number in report.tables[0].numbers():
        if number.agrees is not None and (not experiment.compared_columns or column in experiment.compared_columns):
            yield f"{row}, {column}", number
