"""Draw numbers over time as a matplotlib figure: each feature's series, and below them strips of contributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.extras import require_extra
from unrolled.report.colour import colour_map
from unrolled.report.feature_rows import FeatureRow, feature_rows, rows_limit
from unrolled.report.figure_parts import INK, SOFT, checked_limit, draw_scale, write_heading
from unrolled.report.formatting import fitted, letters, minus, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["series_figure"]

_LINE = "#c9ccd2"
_HEAD, _FOOT, _BAND, _STRIP = 0.9, 0.55, 0.42, 0.24
"""Inches of the heading, the time axis, a feature's series and a feature's strip."""
_LABELLED, _NAME, _LETTER = 12, 20, 0.066
"""Largest number of steps with a label, characters of a label, and inches of one of them."""


def series_figure(attribution: Attribution, limit: float | None) -> Figure:
    """Draw the numbers that a model read, and what each contributed at each step.

    Args:
        attribution: It has features.
        limit: Value at the ends of the colour scale; None for the largest one.

    Raises:
        UsageError: If matplotlib is missing, there are no features, or the limit is not above zero.
        NonFiniteError: If a contribution is NaN or infinite.
    """
    require_extra("figures", "a figure")
    from unrolled.report.shown_figure import ShownFigure

    if attribution.features is None:
        raise UsageError(f"no features to draw: {attribution.no_features}; choose another quantity")
    rows = feature_rows(attribution.features)
    whole = FeatureRow("the whole step", torch.stack([row.scores for row in rows]).sum(dim=0))
    drawn = [row for row in rows if row.values is not None]
    longest = max(letters(fitted(visible(row.name), 28)) for row in (*rows, whole))
    marks = max((len(mark) for row in drawn for mark in _marks(row)), default=0)
    gap = 0.2 + 0.05 * marks  # the lowest and the highest number stand between the series and the colour scale
    left, right, width = 0.35 + 0.075 * longest, gap + 0.95, min(9.0, max(4.5, 0.16 * len(attribution)))
    series, strips = _BAND * len(drawn), _STRIP * (len(rows) + 1)
    wide, tall = left + width + right, _HEAD + series + 0.18 + strips + _FOOT
    figure = ShownFigure(figsize=(wide, tall), facecolor="white")
    for place, row in enumerate(drawn):
        bottom = tall - _HEAD - (place + 1) * _BAND
        axes = figure.add_axes((left / wide, (bottom + 0.05) / tall, width / wide, (_BAND - 0.1) / tall))
        _draw_series(axes, row, len(attribution))
    axes = figure.add_axes((left / wide, _FOOT / tall, width / wide, strips / tall))
    ends = checked_limit(limit) or rows_limit(rows) or 1.0
    image = _draw_strips(axes, [*rows, whole], ends)
    _write_time(axes, attribution, width)
    figure.text(0.12 / wide, 1 - (_HEAD - 0.12) / tall, "a", fontsize=9, color=SOFT, weight="bold")
    figure.text(0.12 / wide, (_FOOT + strips + 0.02) / tall, "b", fontsize=9, color=SOFT, weight="bold")
    height = min(1.8, strips + series)
    place_of_scale = ((left + width + gap) / wide, _FOOT / tall, 0.13 / wide, height / tall)
    draw_scale(figure, place_of_scale, image, (-ends, 0.0, ends), "contribution")
    write_heading(figure, attribution, 0.25 / wide, tall)
    return figure


def _marks(row: FeatureRow) -> list[str]:
    """Write the lowest and the highest number of a series."""
    return [minus(f"{mark:.3g}") for mark in _places(row)]


def _places(row: FeatureRow) -> list[float]:
    return sorted(set(row.ends or ()))


def _draw_series(axes: Axes, row: FeatureRow, count: int) -> None:
    assert row.values is not None
    # a number between two missing ones has no line
    alone = count == 1 or bool(row.values.isnan().any())
    axes.plot(range(count), row.values.tolist(), color=INK, linewidth=1.0, marker="o" if alone else None, markersize=3)
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_yticks(_places(row), _marks(row))
    axes.yaxis.tick_right()
    axes.tick_params(labelsize=6, length=0, labelcolor=SOFT)
    axes.set_xticks([])
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)
    axes.set_ylabel(
        fitted(visible(row.name), 28), rotation=0, ha="right", va="center", fontsize=8, color=INK, parse_math=False
    )


def _draw_strips(axes: Axes, rows: list[FeatureRow], ends: float) -> AxesImage:
    count = len(rows[0].scores)
    matrix = torch.stack([row.scores for row in rows]).numpy()
    image = axes.imshow(
        matrix,
        cmap=colour_map(),
        vmin=-ends,
        vmax=ends,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, count - 0.5, len(rows) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(rows)))
    axes.set_yticklabels([fitted(visible(row.name), 28) for row in rows], parse_math=False)
    axes.tick_params(axis="y", labelsize=8, length=0, labelcolor=INK)
    for place in range(1, len(rows)):
        axes.axhline(place - 0.5, color="white", linewidth=2.5 if place == len(rows) - 1 else 1.2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image


def _write_time(axes: Axes, attribution: Attribution, width: float) -> None:
    """Label some steps by their names, as many as stand side by side in ``width`` inches."""
    count = len(attribution)
    names = [fitted(visible(name), _NAME) for name in attribution.tokens]
    most = max(1, min(_LABELLED, int(width / (_LETTER * (1 + max(map(letters, names)))))))
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if -(-count // n) <= most)
    places = list(range(0, count, every))
    axes.set_xticks(places)
    axes.set_xticklabels([names[t] for t in places], parse_math=False)
    axes.tick_params(axis="x", labelsize=7.5, length=2, color=SOFT, labelcolor=INK)
    axes.set_xlabel("time", fontsize=8, color=SOFT)
