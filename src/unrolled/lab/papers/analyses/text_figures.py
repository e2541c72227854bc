"""A heat map of the characters of a text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import TYPE_CHECKING

from unrolled.report.colour import colour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["draw_text_heat_map"]


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
