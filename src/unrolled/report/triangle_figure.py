"""Draw the triangle of n-grams as a matplotlib figure.

It is drawn on a ``Figure`` of its own and does not use pyplot's global state. Matplotlib belongs to the extra
``figures`` and is imported when a figure is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.extras import require_extra
from unrolled.report.colour import colour, colour_map, shared_limit, text_colour
from unrolled.report.figure_parts import INK, SOFT, checked_limit, draw_scale, write_heading
from unrolled.report.formatting import brief, fitted, letters, minus, visible
from unrolled.report.raster import raster
from unrolled.report.spans import Quantity, rows_by_order, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["triangle_figure"]

_UNIT = {
    "phrase": "score of the phrase (in units of the {unit})",
    "score": "term of the n-gram (in units of the {unit})",
    "contribution": "contribution to the {unit}",
}
# Up to this many tokens, cells show numbers, all tokens have labels, and cells are drawn one by one.
_NUMBERED, _LABELLED, _DRAWN = 14, 90, 400
_IMAGE = 24.0
"""Width in inches of the triangle of a longer text."""
_HEAD = 0.85
"""Inches above the triangles, for the heading."""


def triangle_figure(attribution: Attribution, quantity: Quantity = "phrase", limit: float | None = None) -> Figure:
    """Draw the triangle of n-grams, one panel for each direction, with the ledger as a line above.

    A row holds the n-grams of one length, each centred over its tokens; the whole sentence is at the top. Of more than
    400 tokens it is an image of limited size, each of whose points shows the largest number that falls in it.

    Args:
        attribution: The n-grams and the ledger.
        quantity: ``"phrase"`` for the scores of phrases, ``"score"`` for the n-grams' own terms, ``"contribution"`` for
            their parts of this logit.
        limit: Value at the ends of the colour scale; set it to compare figures. Default:
            :func:`~unrolled.report.colour.shared_limit`.

    Raises:
        UsageError: If matplotlib is missing, the sentence is empty, the quantity is unknown or the limit is not above
            zero.
        NonFiniteError: If the attribution holds NaN or infinity.
    """
    require_extra("figures", "a figure")
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    from unrolled.report.shown_figure import ShownFigure

    if quantity not in _UNIT:
        raise UsageError(f"unknown quantity {quantity!r}; expected one of: {', '.join(_UNIT)}")
    if not len(attribution):
        raise UsageError("the explanation has no tokens; expected at least one")
    ends = checked_limit(limit) or shared_limit([attribution], quantity) or 1.0
    count, panels = len(attribution), len(attribution.directions)
    long = count > _DRAWN
    rows = min(attribution.longest, attribution.triangle.score_band.shape[-1])
    cell = _IMAGE / count if long else min(0.8, max(0.06, 10.0 / count))
    flat = max(letters(visible(token)) for token in attribution.tokens) * 0.085 < cell
    foot = 0.35 if flat else 0.95
    height = max(1.0 if long else 0.0, cell * (0.5 if count <= _NUMBERED else 0.62) * rows)
    pitch = height + foot + (0.3 if panels > 1 else 0.0)
    width = max(4.6, cell * count)
    left = 0.25 if flat else max(0.25, 0.06 * min(14, letters(visible(attribution.tokens[0]))))  # a label at an angle
    wide, tall = left + width + 1.35, _HEAD + max(2.0, panels * pitch)

    figure = ShownFigure(figsize=(wide, tall), facecolor="white")
    mappable = ScalarMappable(Normalize(-ends, ends), colour_map())
    for d, direction in enumerate(attribution.directions):
        top = tall - _HEAD - d * pitch - (pitch - height - foot)
        axes = figure.add_axes((left / wide, (top - height) / tall, width / wide, height / tall))
        axes.set_xlim(0, width / cell)
        axes.set_ylim(0, rows)
        axes.set_axis_off()
        if panels > 1:
            axes.set_title(f"{'ab'[d]}   {direction}", loc="left", fontsize=9, color=SOFT, pad=4)
        (_draw_image if long else _draw_cells)(axes, attribution, d, quantity, ends)
        _write_tokens(axes, attribution, cell, flat)
    length = min(2.0, tall - _HEAD)
    middle = (tall - _HEAD + (foot if flat else 0)) / 2
    place = ((left + width + 0.35) / wide, (middle - length / 2) / tall, 0.13 / wide, length / tall)
    marks = (-ends, -ends / 2, 0.0, ends / 2, ends)
    scale = draw_scale(figure, place, mappable, marks, _UNIT[quantity].format(unit=attribution.unit))
    scale.ax.axhline(0, color=INK, linewidth=0.8)
    write_heading(figure, attribution, 0.25 / wide, tall)
    return figure


def _draw_cells(axes: Axes, attribution: Attribution, d: int, quantity: Quantity, ends: float) -> None:
    from matplotlib.collections import PolyCollection

    count = len(attribution)
    bands = values_of(attribution, quantity)
    corners, values = [], []
    for k, row in enumerate(rows_by_order(bands[d], attribution.directions[d], attribution.longest)):
        for start, value in enumerate(row):
            if not attribution.triangle.holds(d, start, start + k + 1):
                continue
            x = start + k / 2
            corners.append([(x, k), (x + 1, k), (x + 1, k + 1), (x, k + 1)])
            values.append(value)
    cells = PolyCollection(corners, facecolors=[colour(value, ends) for value in values])
    cells.set(edgecolor="white" if count <= _LABELLED else "face", linewidth=0.8 if count <= _NUMBERED else 0.3)
    axes.add_collection(cells)
    if count <= _NUMBERED:
        for ((x, y), *_), value in zip(corners, values, strict=True):
            axes.text(
                x + 0.5,
                y + 0.5,
                minus(brief(value, ends)),
                ha="center",
                va="center",
                fontsize=7.5,
                color=text_colour(colour(value, ends)),
            )


def _draw_image(axes: Axes, attribution: Attribution, d: int, quantity: Quantity, ends: float) -> None:
    rows, time = int(axes.get_ylim()[1]), len(attribution)
    band, held = values_of(attribution, quantity)[d], attribution.triangle
    points = raster(band, attribution.directions[d], rows, held.starts, held.without(d))
    axes.imshow(
        points,
        extent=(0, time, 0, rows),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=colour_map(),
        vmin=-ends,
        vmax=ends,
    )


def _write_tokens(axes: Axes, attribution: Attribution, cell: float, flat: bool) -> None:
    """Write the sentence under its triangle: horizontally where all words fit, else at an angle."""
    every = -(-len(attribution) // _LABELLED)
    for k, token in enumerate(attribution.tokens):
        if k % every == 0:
            axes.annotate(
                fitted(visible(token), 14),
                (k + 0.5, 0),
                xytext=(0, -5) if flat else (3, -5),
                textcoords="offset points",
                ha="center" if flat else "right",
                va="top",
                rotation=0 if flat else 45,
                rotation_mode="default" if flat else "anchor",
                fontsize=9 if flat else max(4.5, min(8.0, cell * 72 * every * 0.62)),
                color=INK,
                parse_math=False,
            )
