"""Box plots of scores around zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.framework.figure_style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_box_pairs", "draw_boxes"]


def draw_boxes(panel: Axes, groups: Mapping[str, Sequence[float]], looks: Sequence[tuple[str, float]]) -> None:
    """Draw a box for each group under its name, with a colour and an opacity for each."""
    drawn = panel.boxplot(
        list(groups.values()),
        tick_labels=list(groups),
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black"},
        flierprops={"marker": "o", "markersize": 2, "markeredgecolor": "#888888"},
    )
    for box, (colour, opacity) in zip(drawn["boxes"], looks, strict=True):
        box.set(facecolor=colour, alpha=opacity)
    panel.axhline(0, color="#888888", linestyle="--", linewidth=1)


def draw_box_pairs(panel: Axes, pair: Sequence[Mapping[int, Sequence[float]]]) -> list[Any]:
    """Draw two boxes side by side at each place; return a box of each kind for a legend, None where there is none."""
    handles = []
    for number, groups in enumerate(pair):
        colour = COLOURS[number]
        drawn = panel.boxplot(
            list(groups.values()),
            positions=[place + 0.36 * number - 0.18 for place in groups],
            widths=0.3,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.35, "edgecolor": colour, "hatch": ("", "///")[number]},
            medianprops={"color": "black"},
            flierprops={"markersize": 2, "markeredgecolor": colour},
        )
        handles.append((drawn["boxes"] or [None])[0])
    panel.axhline(0, color="#888888", linewidth=1)
    return handles
