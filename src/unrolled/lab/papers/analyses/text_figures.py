"""Figures of text: a heat map of its characters, and a scatter plot of words by strength and frequency."""

from __future__ import annotations

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


_LOOKS = (("#999999", ".", 5, 2), (COLOURS[1], "s", 9, 3), (COLOURS[0], "^", 9, 3))
"""Colour, marker, its size and its layer: of other words, and of the members of up to two groups."""
_NAME_COLOUR = "#333333"
_CORNERS = (("left", "bottom", 1, 1), ("left", "top", 1, -1), ("right", "bottom", -1, 1), ("right", "top", -1, -1))
"""Where a name may stand beside its point: how it is aligned, and to which side it is moved."""


def scatter_words(panel: Axes, words: Sequence[WordSlope], groups: Mapping[str, Set[str]]) -> None:
    """Draw words, sorted by slope, by how often they occur; up to two groups of them have colours of their own."""
    rest = frozenset(each.word for each in words) - frozenset().union(*groups.values())
    for (label, chosen), (colour, marker, size, order) in zip(
        {"other words": rest, **groups}.items(), _LOOKS, strict=True
    ):
        shown = [each for each in words if each.word in chosen]
        panel.scatter(
            [each.occurrences for each in shown], [each.slope for each in shown],
            s=size, color=colour, marker=marker, label=label, zorder=order,
        )  # fmt: skip
    for level, style in ((0.0, "-"), (1.0, "--")):
        panel.axhline(level, color="#555555", linewidth=0.8, linestyle=style)


def name_words(panel: Axes, words: Sequence[WordSlope], groups: Mapping[str, Set[str]], extremes: int) -> None:
    """Name the ``extremes`` words at either end of a panel, and the members of the groups.

    A name is left out where it would cover another one or the point of a word of a group. The panel must have its size.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    colours = {word: look[0] for chosen, look in zip(groups.values(), _LOOKS[1:], strict=True) for word in chosen}
    ends = [each for pair in zip(words[:extremes], reversed(words[-extremes:]), strict=True) for each in pair]
    members = [each for each in words if each.word in colours]
    points = panel.transData.transform([(each.occurrences, each.slope) for each in members] or [(1.0, 1.0)])
    taken = [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    for each in dict.fromkeys([*ends, *members]):
        for horizontal, vertical, right, up in _CORNERS:
            name = panel.annotate(
                each.word, (each.occurrences, each.slope), (3 * right, 2 * up), textcoords="offset points",
                ha=horizontal, va=vertical, fontsize=6, color=colours.get(each.word, _NAME_COLOUR), zorder=4,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],
            )  # fmt: skip
            place = name.get_window_extent()
            inside = panel.bbox.containsx(place.x0) and panel.bbox.containsx(place.x1)
            if inside and not any(map(place.overlaps, taken)):
                taken.append(place.padded(2))
                break
            name.remove()
