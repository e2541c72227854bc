"""A map of words: how strong each is against how often it was met, with the names of those that matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from unrolled.lab.papers.analyses.ranked_words import Word

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scatter_words"]


def scatter_words(panel: Axes, words: Sequence[Word], groups: Mapping[str, Set[str]], far: int) -> None:
    """Draw all words, with names where they lie far out and where they are of a group.

    Args:
        panel: with a logarithmic axis of times.
        words: from the lowest slope to the highest.
        groups: the words of each group, two at most, by its name.
        far: how many words at either end are named.
    """
    from unrolled.lab.papers.framework.figure_style import COLOURS

    grouped = frozenset().union(*groups.values())
    rest = frozenset(each.word for each in words) - grouped
    looks = (("#999999", ".", 5, 2), (COLOURS[1], "s", 9, 3), (COLOURS[0], "^", 9, 3))
    for (label, chosen), (colour, marker, size, order) in zip(
        {"other words": rest, **groups}.items(), looks, strict=True
    ):
        shown = [each for each in words if each.word in chosen]
        panel.scatter(
            [each.times for each in shown], [each.slope for each in shown],
            s=size, color=colour, marker=marker, label=label, zorder=order,
        )  # fmt: skip
    colours = {word: look[0] for chosen, look in zip(groups.values(), looks[1:], strict=True) for word in chosen}
    named: list[Word] = []
    reach = max(words[-1].slope, 1.0) - min(words[0].slope, 0.0)  # as both lines are drawn
    ends = [each for pair in zip(words[:far], reversed(words[-far:]), strict=True) for each in pair]
    members = [each for chosen in groups.values() for each in words if each.word in chosen]
    for each in (*ends, *members):
        # A name is left out where it would be written over another.
        if all(
            abs(math.log10(each.times / other.times)) > 0.25 or abs(each.slope - other.slope) > 0.035 * reach
            for other in named
        ):
            named.append(each)
            panel.annotate(
                each.word, (each.times, each.slope), (2, 2), textcoords="offset points",
                fontsize=6, color=colours.get(each.word, "#333333"), zorder=4,
            )  # fmt: skip
    for level, style in ((0.0, "-"), (1.0, "--")):
        panel.axhline(level, color="#555555", linewidth=0.8, linestyle=style)
