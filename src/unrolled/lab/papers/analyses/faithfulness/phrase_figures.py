"""Figures of the correlation of phrase scores with labels: of all phrases, and by the number of their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LENGTH_RANGES, range_name
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Measurements", "by_length", "draw_by_length", "draw_correlations", "mean_of"]

Measurements = Mapping[str, Sequence[Mapping[str, Any]]]
"""What was measured of each score on one network, seed by seed."""


def by_length(measured: Sequence[Mapping[str, Any]]) -> list[tuple[Sequence[float] | None, ...]]:
    """Give for each range of lengths the correlations of all seeds, None where there are no such phrases."""
    return list(zip(*(each["by_length"] for each in measured), strict=True))


def mean_of(measured: Sequence[Mapping[str, Any]], name: str, place: int) -> float:
    """Average over seeds a correlation, at place 0, or an end of its interval."""
    return fmean(each[name][place] for each in measured)


def draw_correlations(
    networks: Mapping[str, Measurements], first: Mapping[str, Mapping[str, float]], shown: Sequence[str]
) -> Figure:
    """Draw the correlations of the scores that are ``shown``, and those of a first measurement, by network."""
    methods = [method for method in shown if any(method in found for found in networks.values())]
    figure, (panel,) = grid(1, 1, width=6.4, height=1.4 + 0.2 * len(methods))
    for number, (label, found) in enumerate(networks.items()):
        rows = [(place + 0.3 * number - 0.15, method) for place, method in enumerate(methods) if method in found]
        values, low, high = ([mean_of(found[method], "pearson", end) for _, method in rows] for end in range(3))
        spread = [[abs(value - end) for value, end in zip(values, ends, strict=True)] for ends in (low, high)]
        heights, colour, marker = [height for height, _ in rows], COLOURS[number], MARKERS[number]
        panel.errorbar(values, heights, xerr=spread, linestyle="none", color=colour, marker=marker, label=label)
        theirs = [(first[label][method], height) for height, method in rows if method in first[label]]
        if theirs:
            xs, ys, before = [x for x, _ in theirs], [y for _, y in theirs], f"{label}, first measurement"
            panel.scatter(xs, ys, s=30, facecolors="none", edgecolors=colour, marker=marker, label=before)
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set(xlabel="Pearson correlation with labels, 95 % intervals")
    panel.set_yticks(range(len(methods)), methods)
    panel.invert_yaxis()
    legend_below(figure, panel, 2)
    return figure


def draw_by_length(results: Sequence[Result], networks: Mapping[str, Measurements], shown: Sequence[str]) -> Figure:
    """Draw the correlations of some methods over the ranges of lengths, with their intervals, a panel a network."""
    figure, panels = grid(1, len(networks), width=3.6, height=3.4)
    lines = {}
    for panel, (name, found) in zip(panels, networks.items(), strict=True):
        for number, method in enumerate(shown):
            if method not in found:
                continue
            spans = [[span for span in spans if span] for spans in by_length(found[method])]
            places = [place for place, span in enumerate(spans) if span]
            values, low, high = ([fmean(each[end] for each in spans[place]) for place in places] for end in range(3))
            colour, marker = COLOURS[number], MARKERS[number]
            (lines[method],) = panel.plot(places, values, color=colour, marker=marker, label=method)
            panel.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        panel.set(title=name, xlabel="words in the phrase", xlim=(-0.2, len(LENGTH_RANGES) - 0.8))
        panel.set_xticks(range(len(LENGTH_RANGES)), [range_name(*each) for each in LENGTH_RANGES])
    write_seeds(panels, results)
    panels[0].set_ylabel("Pearson correlation")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=3)
    return figure
