"""A scatter plot of words by their slopes and by how often they occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from unrolled.lab.papers.analyses.word_operators import WordSlope
from unrolled.lab.papers.framework.figure_style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["name_words", "scatter_words"]

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
