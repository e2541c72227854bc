"""Figures of the brackets: accuracy by distance, and learned embeddings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, write_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CAPTION", "SHAPES", "draw_distances", "draw_embeddings", "pooled"]

SHAPES = ("(", "[", ")", "]")
"""The brackets, in the order of their embeddings."""
CAPTION = (
    "the longer strings, one training of each model. Lines are bins of distances, each of which ends at 1.5 times its "
    "beginning: above, the mean over its distances, each with the same weight; below, its worst distance. An open mark "
    "below is the worst of all distances (the shortest, where several are equal), whose share is WCPA; models without "
    "an error have none. Bins in which more than a tenth of the possible distances do not occur are not drawn, as few "
    "brackets have these distances; open marks may lie among them. A line has its filled marks at one bin in seven. "
    "Lines at one height cover each other, but their filled marks are at different bins."
)
_PRESENT = 0.9
"""Bins with a smaller share of their possible distances are not drawn."""


def pooled(result: Result) -> tuple[list[float], list[float], list[float]]:
    """Pool distances and shares, %, in bins whose ends are 1.5 times their beginnings.

    Results do not record how many brackets have a distance. Where few have, some of the odd distances are missing; bins
    without them are left out.

    Returns:
        The mean distance of each bin, its mean share, and the share of its worst distance.
    """
    bins: dict[int, list[tuple[float, float]]] = {}
    for distance, share in zip(result["distances"], result["right"], strict=True):
        bins.setdefault(_bin(distance), []).append((distance, 100 * share))
    possible = Counter(map(_bin, range(1, 2 * max(result["distances"]), 2)))
    kept = [found for number, found in sorted(bins.items()) if len(found) >= _PRESENT * possible[number]]
    distances, shares = ([[pair[place] for pair in found] for found in kept] for place in (0, 1))
    return [*map(fmean, distances)], [*map(fmean, shares)], [*map(min, shares)]


def _bin(distance: int) -> int:
    return math.floor(math.log(distance, 1.5))


def draw_distances(results: Sequence[Result], depths: Sequence[int], models: Sequence[str]) -> Figure:
    """Draw the mean of each bin above its worst distance, for the first seed, which shows the shape."""
    figure, panels = grid(2, len(depths), width=3.4, height=2.6)
    lines = {}
    for place, depth in enumerate(depths):
        above, below = panels[place :: len(depths)]
        for number, model in enumerate(models):
            if chosen := where(results, model=model, depth=depth):
                distances, means, worst = pooled(chosen[0])
                style: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number], "label": model}
                # Lines that lie on each other have marks at different bins.
                line: dict[str, Any] = {**style, "linewidth": 1.2, "markersize": 5, "markevery": (number, len(models))}
                (lines[model],) = above.plot(distances, means, **line)
                below.plot(distances, worst, **line)
                share, distance = min(zip(chosen[0]["right"], chosen[0]["distances"], strict=True))
                if share < 1:
                    below.plot(distance, 100 * share, **style, fillstyle="none", markersize=7, clip_on=False)
        above.set(title=f"m = {depth}, mean", xscale="log", ylim=(-4, 104))
        below.set(title=f"m = {depth}, worst distance", xscale="log", ylim=(-4, 104))
        above.sharex(below)
        below.set_xlabel("distance to the opening bracket")
    write_seeds(panels[len(depths) :], results[:1])
    for panel in panels[:: len(depths)]:
        panel.set_ylabel("correct, %")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=4)
    return figure


def draw_embeddings(results: Sequence[Result], depths: Sequence[int]) -> Figure:
    """Draw each bracket at its learned embedding of two dimensions, for the first seed."""
    from matplotlib.lines import Line2D

    figure, panels = grid(1, len(depths), width=3.0, height=3.0)
    for panel, depth in zip(panels, depths, strict=True):
        panel.axhline(0, color="#888888", linewidth=0.8)
        panel.axvline(0, color="#888888", linewidth=0.8)
        for result in where(results, model="embeddings learned, e = 2", depth=depth)[:1]:
            for place, (x, y) in enumerate(result["embedding"]):
                pushes = result["gates"][place] > 0.5
                panel.plot(x, y, marker=f"${SHAPES[place]}$", markersize=11, color=COLOURS[0 if pushes else 1])
        panel.set(title=f"m = {depth}", xlabel="first dimension of the embedding")
        panel.margins(0.2)
    panels[0].set_ylabel("second dimension")
    kinds = (("pushes", COLOURS[0]), ("pops", COLOURS[1]))
    handles = [Line2D([], [], marker="s", linestyle="", color=colour, label=label) for label, colour in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
