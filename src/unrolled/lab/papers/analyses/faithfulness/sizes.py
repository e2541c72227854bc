"""Tables of methods at several sizes: the peers with few samples and with their usual numbers of samples.

All methods of a network explain the same texts of the same training; a result is that of one network.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from unrolled.lab.papers.analyses.faithfulness.scores import (
    difference,
    mean_difference,
    mean_score,
    measured,
    networks_of,
    show_difference,
)
from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.table import MISSING, Number, Table

__all__ = ["against_table", "compared_table", "mean_table", "missing_table"]

_DEFAULT = "secant"
_TIME = "processor time, in that of one forward and one backward pass over the same texts"


def _mean(results: Sequence[Result], method: str, measure: str, split: str = "test") -> str:
    """Average the time or the cancellation of a method over the networks that have it."""
    methods = (result["methods"].get(method) for result in where(results, split=split))
    known = [each[measure] for each in methods if each and each[measure] is not None]
    if not known:
        return MISSING
    mean = fmean(known)
    return f"{mean:.3g}" if mean < 100 else f"{mean:.0f}"


def mean_table(results: Sequence[Result], methods: Sequence[str], title: str, split: str = "test") -> Table:
    """Tabulate the score of each method on each network, its mean where all networks have it, cancellation and time."""
    networks, rows = networks_of(results), []
    for method in methods:
        scores = [mean_score(results, network, method, split) for network in networks]
        known = [score for score in scores if score is not None]
        cells = [MISSING if score is None else Number([score], digits=3) for score in scores]
        mean = Number([fmean(known)], digits=3) if len(known) == len(networks) else MISSING
        if known:
            means = (_mean(results, method, measure, split) for measure in ("cancellation", "cost"))
            rows.append((method, *cells, mean, *means))
    return Table(f"{title}; time: {_TIME}", ("method", *networks, "mean", "cancellation", "time"), rows)


def against_table(results: Sequence[Result], method: str, rivals: Sequence[str]) -> Table:
    """Tabulate what a method scores less what each rival scores, network by network and over all that have both."""
    networks = networks_of(results)
    rows = [
        (
            rival,
            *(show_difference(difference(results, network, method, rival)) for network in networks),
            show_difference(mean_difference(results, method, rival)),
        )
        for rival in rivals
        if any(measured(results, network, rival) for network in networks)
    ]
    title = f"Score of {method} less that of each method on the same texts of the same training, with 95% intervals"
    return Table(title, ("less", *networks, "mean of the networks that have it"), rows)


def missing_table(results: Sequence[Result]) -> Table | None:
    """Say why a method has no number on a network; None where nothing is missing."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for method, reason in result["missing"].items():
            networks = reasons.setdefault((method, reason), [])
            if (network := result.trial.settings["network"]) not in networks:
                networks.append(network)
    rows = [(method, reason, "; ".join(networks)) for (method, reason), networks in reasons.items()]
    return Table("Why a dash stands for a method", ("method", "reason", "networks"), rows) if rows else None


def compared_table(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """Tabulate methods by what they score more than the default, and where each is furthest behind.

    The best is the first; a method that some networks lack stands last, since its mean is of easier or harder texts.
    """
    networks = networks_of(results)
    scores = {
        method: {n: s for n in networks if (s := mean_score(results, n, method)) is not None} for method in methods
    }
    ranked = []
    for method in methods:
        if found := mean_difference(results, method, _DEFAULT):
            mean = f"{fmean(scores[method].values()):.3f}"
            if len(scores[method]) < len(networks):
                mean += f", on {len(scores[method])} of {len(networks)} networks"
            more = MISSING if method == _DEFAULT else show_difference(found)
            row = (method, mean, more, _mean(results, method, "cost"), _furthest_behind(scores, method))
            ranked.append((len(scores[method]) < len(networks), -found[0], row))
    rows = [row for *_, row in sorted(ranked, key=lambda each: each[:2])]
    title = (
        f"Methods on the same texts of {len(networks)} networks, those that rank words best first, and last what some "
        f"networks lack; time: {_TIME}"
    )
    return Table(title, ("method", "mean score", f"less {_DEFAULT}", "time", "furthest below the best"), rows)


def _furthest_behind(scores: dict[str, dict[str, float]], method: str) -> str:
    """Name the network on which a method is furthest below the best of the methods."""
    behind = {}
    for network, score in scores[method].items():
        best = max((name for name in scores if network in scores[name]), key=lambda name: scores[name][network])
        behind[network] = (score - scores[best][network], best)
    network = min(behind, key=lambda name: behind[name][0])
    least, best = behind[network]
    return MISSING if best == method else f"{network}: {least:+.3f} to {best}"
