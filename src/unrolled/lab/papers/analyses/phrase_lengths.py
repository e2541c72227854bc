"""Phrases by their length: the spans of lengths that are looked at apart, and how scores compare over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SPANS", "draw_by_length", "span_name"]

SPANS = ((2, 2), (3, 4), (5, 8), (9, 16), (17, None))
"""From how many words to how many, None for any number."""

Spans = Sequence[Sequence[Sequence[float] | None]]
"""For each span and seed the correlation with the ends of its interval; None where there were no such phrases."""


def span_name(low: int, high: int | None) -> str:
    """Name a span of lengths.

    Args:
        low: the fewest words.
        high: the most; None for any number.

    Returns:
        A few words.
    """
    return f"{low}" if high == low else f"{low} or more" if high is None else f"{low} to {high}"


def draw_by_length(measured: Mapping[str, Mapping[str, Spans]], methods: Sequence[str]) -> Figure:
    """Draw the correlations of some methods over the spans, with their intervals.

    Args:
        measured: for each network, by its name, the spans of each method.
        methods: which to draw; those that were not measured are left out.

    Returns:
        One panel a network.
    """
    from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid

    figure, panels = grid(1, len(measured), width=3.6, height=3.4)
    lines = {}
    for panel, (name, found) in zip(panels, measured.items(), strict=True):
        for number, method in enumerate(methods):
            if method not in found:
                continue
            spans = [[span for span in spans if span] for spans in found[method]]
            places = [place for place, span in enumerate(spans) if span]
            values, low, high = ([fmean(each[end] for each in spans[place]) for place in places] for end in range(3))
            colour, marker = COLOURS[number], MARKERS[number]
            (lines[method],) = panel.plot(places, values, color=colour, marker=marker, label=method)
            panel.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        panel.set(title=name, xlabel="words in the phrase", xlim=(-0.2, len(SPANS) - 0.8))
        panel.set_xticks(range(len(SPANS)), [span_name(*span) for span in SPANS])
    panels[0].set_ylabel("Pearson's correlation")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=3)
    return figure
