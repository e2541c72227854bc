"""What dev texts, without their labels, choose among expansions, and what the choice scores on test texts.

The score of deletion asks for the model's own prediction only. A choice is made for each network by itself, and once
for all networks by the mean. All choices are made among the same candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from unrolled.lab.papers.analyses.faithfulness.scores import (
    by_seed,
    mean_difference,
    mean_score,
    networks_of,
    show_difference,
)
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.table import MISSING, Table

__all__ = ["choice_table"]


def _best(results: Sequence[Result], networks: Sequence[str], candidates: Sequence[str], split: str) -> str | None:
    """Find the candidate with the highest mean score; None unless every network has a score of one."""
    means = {}
    for candidate in candidates:
        scores = [mean_score(results, network, candidate, split) for network in networks]
        known = [score for score in scores if score is not None]
        if len(known) == len(networks):
            means[candidate] = fmean(known)
    return max(means, key=means.__getitem__, default=None)


def _time(results: Sequence[Result], networks: Sequence[str], candidates: Sequence[str]) -> str:
    """Sum the time of all candidates on dev, and average over the networks."""
    found = [each for n in networks for m in candidates for each in by_seed(results, n, m, "dev").values()]
    return f"{sum(each['cost'] for each in found) / len(networks):.0f}"


def choice_table(results: Sequence[Result], candidates: Sequence[str], rivals: Sequence[str]) -> Table | None:
    """Tabulate what dev chooses, and its test score less that of what is used without a choice.

    None where no network has results of both splits.
    """
    chosen = {n: best for n in networks_of(results) if (best := _best(results, [n], candidates, "dev"))}
    plan: list[tuple[str, dict[str, str], str | None]] = [(name, {name: best}, best) for name, best in chosen.items()]
    if len(chosen) > 1:
        plan.append(("each by itself, the mean", chosen, None))
        if best := _best(results, list(chosen), candidates, "dev"):
            plan.append(("one for all, by the mean", dict.fromkeys(chosen, best), best))
    rows = []
    for name, choice, one in plan:
        found = [mean_difference(results, choice, rival) for rival in rivals]
        if all(found):
            highest = _best(results, list(choice), candidates, "test") if one else None
            time = _time(results, list(choice), candidates)
            rows.append((name, one or MISSING, highest or MISSING, *map(show_difference, found), time))
    title = (
        f"Choosing among {len(candidates)} exact expansions by their score on dev texts without labels: the test score "
        "of what is chosen less that of what is used without a choice, with 95% intervals over test texts for a choice "
        "that is made; time: processor time of all candidates on dev, in that of one forward and one backward pass "
        "over these texts, deletions not counted"
    )
    columns = ("network", "chosen on dev", "highest on test", *(f"less {rival}" for rival in rivals), "time")
    return Table(title, columns, rows) if rows else None
