"""How much of a gate times a content is the content's: the share p of the expansion ``shares``.

The tasks, seeds and settings are those of ``ours/known-truth``, where the words that decide an answer are known; the
networks are trained again. ``ours/known-truth`` has p = 3/4 and p = 1/2. Here p is every quarter from 0 to 1. Networks
of the first seed choose p. Those of the second are looked at after that, and say what the choice is worth. Networks
written by hand stand beside them.

Source:
    Our own question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

from unrolled.expansions.shares import Shares
from unrolled.lab.papers.analyses.faithfulness.scores import show_difference
from unrolled.lab.papers.analyses.known_truth.truth_agreement import task_differences
from unrolled.lab.papers.framework.bootstrap import mean_over_groups
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.ours.known_truth import NOT_LEARNED, KnownTruth
from unrolled.report.formatting import counted

__all__ = ["ContentShare"]

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_DEFAULT = Shares().share
_GROUPS = ("by hand", "first seed", "second seed")
_MEASURES = ("first", "set")


def _method(share: float) -> str:
    return "shares" if share == _DEFAULT else f"shares({share:g})"


class ContentShare(Experiment):
    """A trial is one network with every p."""

    name = "ours/content-share"
    title = "The share p of the expansion shares: which p finds the words that decide"
    source = "our own question"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """Take the networks of ``ours/known-truth``, those that learned with two of its seeds."""
        listed = []
        for trial in KnownTruth().trials(scale):
            if trial.settings.get("seed", 0) < 2 and trial.settings["task"] != NOT_LEARNED:
                group = _GROUPS[1 + trial.settings["seed"]] if "seed" in trial.settings else _GROUPS[0]
                settings = {**trial.settings, "methods": list(map(_method, _SHARES)), "group": group}
                listed.append(Trial(trial.label, settings))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Build or train the network, and let every p look for the reasons."""
        return KnownTruth().run(trial, setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Give the shares of cases for each p, and their distance to those of the default."""
        groups = {name: [r for r in where(results, group=name) if r["learned"]] for name in _GROUPS}
        groups = {name: found for name, found in groups.items() if found}
        return Report([_found(groups), _distances(groups)])


def _found(groups: Mapping[str, Sequence[Result]]) -> Table:
    columns = ("p", *(f"{name}: {measure}" for name, measure in product(groups, _MEASURES)))
    rows: list[Sequence[str | Number]] = []
    for share in _SHARES:
        values = (_values(found, share, measure) for found, measure in product(groups.values(), _MEASURES))
        rows.append((f"{share:g}", *(Number([fmean(each)], digits=3) for each in values)))
    sizes = ", ".join(f"{name}: {counted(len(found), 'network')}" for name, found in groups.items())
    title = (
        "Share of cases whose highest word is in the reason (first), and whose k highest words are the reason of k "
        f"words (set); means over networks: {sizes}"
    )
    return Table(title, columns, rows)


def _distances(groups: Mapping[str, Sequence[Result]]) -> Table:
    columns = ("p", *(f"{name}: {measure}" for name, measure in product(groups, _MEASURES)))
    rows: list[Sequence[str | Number]] = []
    for share in _SHARES:
        if share != _DEFAULT:
            cells = (
                _distance(name, found, share, measure) for (name, found), measure in product(groups.items(), _MEASURES)
            )
            rows.append((f"{share:g}", *cells))
    title = (
        f"The same less that of p = {_DEFAULT:g}; of networks that learned, the mean over the tasks that both networks "
        "of a seed learned, with 95% intervals over trainings, not corrected for their number"
    )
    return Table(title, columns, rows)


def _values(found: Sequence[Result], share: float, measure: str) -> list[float]:
    return [result["methods"][_method(share)][measure] for result in found]


def _distance(name: str, found: Sequence[Result], share: float, measure: str) -> str:
    """Compare with the default; each network written by hand is one of its kind, so their mean has no interval."""
    if name == _GROUPS[0]:
        return f"{fmean(_values(found, share, measure)) - fmean(_values(found, _DEFAULT, measure)):+.3f}"
    tasks = dict.fromkeys(result.trial.settings["task"] for result in found)
    apart = task_differences([where(found, task=task) for task in tasks], _method(share), _method(_DEFAULT), measure)
    return show_difference(mean_over_groups(apart) if apart else None)
