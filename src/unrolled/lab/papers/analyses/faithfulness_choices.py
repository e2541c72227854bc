"""What dev texts, without their labels, choose among expansions, and what the choice scores on test texts.

The score of deletion asks for the model's own prediction only. A choice is made for each network, and once for all
networks by the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from unrolled.lab.papers.analyses.faithfulness_scores import (
    mean_difference,
    mean_score,
    networks_of,
    show_difference,
)
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.table import Table

__all__ = ["chosen_table"]

_ALL = "all of them, by the mean"


def _best(results: Sequence[Result], networks: Sequence[str], candidates: Sequence[str]) -> str | None:
    """Choose the candidate with the highest mean score on dev; None unless every network has a score of one."""
    means = {}
    for candidate in candidates:
        scores = [mean_score(results, network, candidate, "dev") for network in networks]
        known = [score for score in scores if score is not None]
        if len(known) == len(networks):
            means[candidate] = fmean(known)
    return max(means, key=means.__getitem__, default=None)


def chosen_table(
    results: Sequence[Result], candidates: Sequence[str], rivals: Sequence[str], what: str
) -> Table | None:
    """Tabulate what dev chooses, and its test score less that of what is used without a choice.

    None where no network has results of both splits.
    """
    networks = networks_of(results)
    rows = []
    for name, which in (*((network, [network]) for network in networks), (_ALL, networks)):
        chosen = _best(results, which, candidates)
        if chosen is None:
            continue
        some = [result for result in results if result.trial.settings["network"] in which]
        found = [mean_difference(some, chosen, rival) for rival in rivals]
        if all(found):
            rows.append((name, chosen, *map(show_difference, found)))
    title = f"{what} chosen on dev texts alone, and its test score less that of what is used without a choice"
    return Table(title, ("network", "chosen on dev", *(f"less {rival}" for rival in rivals)), rows) if rows else None
