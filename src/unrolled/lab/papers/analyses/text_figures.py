"""Figures of text: a heat map of its characters, and a scatter plot of words by strength and frequency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from statistics import quantiles
from typing import TYPE_CHECKING

from unrolled.lab.papers.analyses.word_operators import WordSlope
from unrolled.lab.papers.framework.figure_style import COLOURS
from unrolled.report.colour import colour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["draw_text_heat_map", "scatter_words"]


def draw_text_heat_map(panel: Axes, lines: Sequence[str], values: Sequence[float]) -> AxesImage:
    """Draw text on a coloured background and return the background, for a colour bar from 0 (least) to 1 (most).

    ``values`` has one number for each character, and one for each line end, which is not drawn. The colours span the
    2nd to the 98th percentile, so that one extreme character does not hide all differences between the others.
    """
    low, *_, high = quantiles(values, n=50)
    width, each = max(map(len, lines)), iter(values)
    ground = [[float("nan")] * width for _ in lines]
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            ground[row][column] = min(max((next(each) - low) / ((high - low) or 1.0), 0.0), 1.0)
            written = panel.text(column, row, character, ha="center", va="center", family="monospace", fontsize=7.5)
            written.set_in_layout(False)  # it lies within its panel; measuring a thousand characters takes seconds
        next(each)
    # the limits leave out both ends of the colour map, which are too dark for text
    shown = panel.imshow(ground, cmap=colour_map(), vmin=-0.15, vmax=1.15, aspect="auto", alpha=0.75)
    panel.grid(False)
    panel.set_axis_off()
    return shown


def scatter_words(panel: Axes, words: Sequence[WordSlope], groups: Mapping[str, Set[str]], extremes: int) -> None:
    """Draw words, sorted by slope, on a panel with a logarithmic x axis.

    Names the members of up to two groups, and the ``extremes`` words at either end.
    """
    rest = frozenset(each.word for each in words) - frozenset().union(*groups.values())
    looks = (("#999999", ".", 5, 2), (COLOURS[1], "s", 9, 3), (COLOURS[0], "^", 9, 3))
    for (label, chosen), (colour, marker, size, order) in zip(
        {"other words": rest, **groups}.items(), looks, strict=True
    ):
        shown = [each for each in words if each.word in chosen]
        panel.scatter(
            [each.occurrences for each in shown], [each.slope for each in shown],
            s=size, color=colour, marker=marker, label=label, zorder=order,
        )  # fmt: skip
    colours = {word: look[0] for chosen, look in zip(groups.values(), looks[1:], strict=True) for word in chosen}
    named: list[WordSlope] = []
    height = max(words[-1].slope, 1.0) - min(words[0].slope, 0.0)  # the lines at 0 and 1 are always shown
    ends = [each for pair in zip(words[:extremes], reversed(words[-extremes:]), strict=True) for each in pair]
    members = [each for chosen in groups.values() for each in words if each.word in chosen]
    for each in (*ends, *members):
        # a name is left out where it would cover another
        if all(
            abs(math.log10(each.occurrences / other.occurrences)) > 0.25
            or abs(each.slope - other.slope) > 0.035 * height
            for other in named
        ):
            named.append(each)
            panel.annotate(
                each.word, (each.occurrences, each.slope), (2, 2), textcoords="offset points",
                fontsize=6, color=colours.get(each.word, "#333333"), zorder=4,
            )  # fmt: skip
    for level, style in ((0.0, "-"), (1.0, "--")):
        panel.axhline(level, color="#555555", linewidth=0.8, linestyle=style)
