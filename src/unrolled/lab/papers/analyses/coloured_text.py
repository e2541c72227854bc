"""Text in which every character stands on a ground whose colour shows a value."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import TYPE_CHECKING

from unrolled.report.colour import colour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["colour_text"]


def colour_text(panel: Axes, lines: Sequence[str], values: Sequence[float]) -> AxesImage:
    """Write text on coloured ground: blue where a value is among the most of the text, orange where among the least.

    Colours reach from the lowest fiftieth of the values to the highest, so that a single character does not bleach all
    others.

    Args:
        panel: an empty one; its axes are hidden.
        lines: without their ends.
        values: one for each character, and one for each line's end, which is not drawn.

    Returns:
        The ground, for a colour bar: 0 stands for the least value, 1 for the most.
    """
    low, *_, high = quantiles(values, n=50)
    width, each = max(map(len, lines)), iter(values)
    ground = [[float("nan")] * width for _ in lines]
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            ground[row][column] = min(max((next(each) - low) / ((high - low) or 1.0), 0.0), 1.0)
            written = panel.text(column, row, character, ha="center", va="center", family="monospace", fontsize=7.5)
            written.set_in_layout(False)  # it lies within its panel: measuring a thousand of them takes seconds
        next(each)
    # Short of the ends of the map, which are too dark to read on.
    shown = panel.imshow(ground, cmap=colour_map(), vmin=-0.15, vmax=1.15, aspect="auto", alpha=0.75)
    panel.grid(False)
    panel.set_axis_off()
    return shown
