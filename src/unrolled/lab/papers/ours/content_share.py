"""How much of a gate times a content is the content's: the share p of the expansion ``shares``.

The networks, tasks and cases are those of ``ours/known-truth``, where the words that decide an answer are known. There
p is 3/4 and 1/2 alone. Here it is every quarter from 0 to 1. Networks of the first seed choose p; those of the second
are looked at once, after that, and say what the choice is worth. Networks written by hand stand beside them.

Source:
    Our own question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

import torch

from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import MISSING, Number, Table
from unrolled.lab.papers.ours.known_truth import KnownTruth
from unrolled.report.formatting import counted

__all__ = ["ContentShare"]

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_DEFAULT = 0.75
_GROUPS = ("by hand", "first seed", "second seed")
_MEASURES = ("first", "set")
_DRAWS = 2000
_NEVER_LEARNED = "first word of 40"
"""No network of ``ours/known-truth`` learned it."""


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
            if trial.settings.get("seed", 0) < 2 and trial.settings["task"] != _NEVER_LEARNED:
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
            cells = (_distance(found, share, measure) for found, measure in product(groups.values(), _MEASURES))
            rows.append((f"{share:g}", *cells))
    title = f"The same less that of p = {_DEFAULT:g}, with 95 % intervals over networks that are drawn with replacement"
    return Table(title, columns, rows)


def _values(found: Sequence[Result], share: float, measure: str) -> list[float]:
    return [result["methods"][_method(share)][measure] for result in found]


def _distance(found: Sequence[Result], share: float, measure: str) -> str:
    """Draw whole networks, the same for both p."""
    if len(found) < 2:
        return MISSING
    ours, theirs = (torch.tensor(_values(found, each, measure)) for each in (share, _DEFAULT))
    away = (ours - theirs).double()
    drawn = torch.randint(len(away), (_DRAWS, len(away)), generator=torch.Generator().manual_seed(0))
    low, high = interval(away[drawn].mean(dim=1).tolist())
    return f"{float(away.mean()):+.3f} ({low:+.3f} to {high:+.3f})"
