"""Tables and a figure that compare methods of attribution over networks, texts and trainings.

A result is that of one network, one family of methods and one split, as ``ours/faithfulness`` stores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.analyses.faithfulness.scores import (
    difference,
    measured,
    networks_of,
    show_difference,
)
from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, from_to, grid, legend_below, write_count
from unrolled.lab.papers.framework.table import MISSING, Number, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "comparison_table",
    "draw_differences",
    "measured_methods",
    "measures_table",
    "networks_table",
    "score_table",
    "training_table",
]


def _number(values: Sequence[float], digits: int = 3) -> str | Number:
    return Number(values, digits=digits) if values else MISSING


def measured_methods(results: Sequence[Result], methods: Sequence[str]) -> list[str]:
    """List the methods that were measured on the test texts of a network."""
    return [method for method in methods if any(measured(results, each, method) for each in networks_of(results))]


def score_table(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """Tabulate the mean score of each method on the test texts of each network."""
    networks, rows = networks_of(results), []
    for method in methods:
        cells = [[fmean(e["scores"]) / 1000 for e in measured(results, n, method)] for n in networks]
        rows.append((method, *map(_number, cells)))
    title = (
        "Comprehensiveness less sufficiency, test texts; higher is better; sampling and 300 points on fewer texts "
        "and one training"
    )
    return Table(title, ("method", *networks), rows)


def comparison_table(
    results: Sequence[Result], method: str, rivals: Sequence[str], which: str = "", split: str = "test"
) -> Table:
    """Tabulate what a method scores less what its rivals score."""
    networks = networks_of(results)
    found = {rival: [difference(results, network, method, rival, split) for network in networks] for rival in rivals}
    shown = [rival for rival in rivals if any(found[rival])]
    rows = [
        (network, *(show_difference(found[rival][place]) for rival in shown)) for place, network in enumerate(networks)
    ]
    title = f"Score of {method} less that of another method{which}, with 95% intervals"
    return Table(title, ("network", *(f"less {rival}" for rival in shown)), rows)


def training_table(results: Sequence[Result], method: str, rivals: Sequence[str], networks: Sequence[str]) -> Table:
    """Count for each training by itself, and for their mean, the networks on which a method is above its rivals."""
    seeds = sorted({result.trial.settings["seed"] for result in results})
    rows: list[Sequence[str | Number]] = []
    for rival in rivals:
        for name, which in (*((f"{seed}", [seed]) for seed in seeds), ("mean", seeds)):
            some = [result for result in results if result.trial.settings["seed"] in which]
            found = {n: each for n in networks if (each := difference(some, n, method, rival))}
            above = [n for n, (_, low, _) in found.items() if low > 0]
            below = {n: mean for n, (mean, _, high) in found.items() if high < 0}
            listed = "; ".join(f"{n}: {mean:+.3f}" for n, mean in below.items())
            level = len(found) - len(above) - len(below)
            rows.append((rival, name, f"{len(above)}", f"{level}", f"{len(below)}", listed or MISSING))
    title = (
        f"Of {len(networks)} networks, those on which {method} is above, level with or below another method by the 95% "
        "intervals, for each training alone and for their mean"
    )
    return Table(title, ("less", "seed", "above", "level", "below", "where below"), rows)


def measures_table(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """Tabulate all measures of each method, averaged over the networks that have it; the results are of one seed."""
    networks = networks_of(results)
    rows: list[Sequence[str | Number]] = []
    for method in methods:
        found = [each for network in networks for each in measured(results, network, method)]
        count = sum(bool(measured(results, network, method)) for network in networks)
        score = Number([fmean(fmean(each["scores"]) / 1000 for each in found)], digits=3)
        rows.append((method, str(count), score, *(_mean_measure(found, name) for name in _MEASURES.values())))
    return Table(
        "All measures of one training, means over the networks that have the method (their number; compare rows with "
        "the same number); stability to <unk>: correlation of the other words' attributions before and after the "
        "fifth of the words that is needed least is replaced by <unk>; remainder: the largest of the networks' "
        "medians; time: processor time, in that of one forward and one backward pass over the same texts",
        ("method", "networks", "score", *_MEASURES),
        rows,
    )


_MEASURES = {
    "comprehensiveness": "comprehensiveness", "sufficiency": "sufficiency", "score by <unk>": "blank_score",
    "insertion": "insertion", "stability to <unk>": "stability", "remainder": "remainder",
    "cancellation": "cancellation", "time": "cost",
}  # fmt: skip
"""What a column of all measures is called in results."""


def _mean_measure(found: Sequence[Mapping[str, Any]], name: str) -> str | Number:
    """Average a measure over the networks that have it; of remainders take the largest."""
    known = [each[name] for each in found if each[name] is not None]
    if not known:
        return MISSING
    if name == "remainder":
        return f"{max(known):.1e}"
    return f"{fmean(known):.3g}" if name in ("cancellation", "cost") else Number([fmean(known)], digits=3)


def networks_table(results: Sequence[Result]) -> Table:
    """Tabulate accuracy, length and number of the texts of each network."""
    rows: list[Sequence[str | Number]] = []
    for network in networks_of(results):
        mine = where(results, network=network)
        trained = {result.trial.settings["seed"]: result["accuracy"] for result in mine}
        accuracy = Number(list(trained.values()), digits=1, percent=True)
        longest = max(where(mine, split="test") or mine, key=lambda result: result["texts"])
        rows.append((network, accuracy, f"{longest['words']:.0f}", str(longest["texts"])))
    return Table("The networks", ("network", "test accuracy, %", "words in a text, mean", "texts"), rows)


def draw_differences(results: Sequence[Result], methods: Sequence[str]) -> Figure:
    """Draw what each method scores less what the default scores, a line for each network."""
    networks = networks_of(results)
    figure, (panel,) = grid(1, 1, width=8.0, height=0.6 * len(networks) + 1.6)
    for number, method in enumerate(methods):
        points = [
            (place + 0.13 * (number - (len(methods) - 1) / 2), found)
            for place, network in enumerate(networks)
            if (found := difference(results, network, method, "secant"))
        ]
        if points:
            heights, values = [height for height, _ in points], [found[0] for _, found in points]
            spread = [[abs(found[0] - found[end]) for _, found in points] for end in (1, 2)]
            style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4, "linestyle": "none"}
            # the stubs give every further option the type of one of them
            panel.errorbar(values, heights, xerr=spread, label=method, **style)  # type: ignore[arg-type]
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set_yticks(range(len(networks)), networks)
    panel.invert_yaxis()
    panel.set(xlabel="score less that of secant, 95 % intervals")
    shown = [each for network in networks if (each := measured(results, network, "secant"))]
    if shown:
        texts = {len(seed["scores"]) for each in shown for seed in each}
        write_count(panel, f"{from_to(texts)} texts, {from_to(set(map(len, shown)))} seeds")
    legend_below(figure, panel, 4)
    return figure
