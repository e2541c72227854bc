"""The figure: the triangle of n-grams, standing on its sentence, ready for print.

Drawn on a ``Figure`` of its own: no global state of pyplot is read or changed. Matplotlib is loaded when a
figure is asked for, since it belongs to an extra.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.extras import require_extra
from unrolled.report.colour import Quantity, colour, colour_map, ink, shared_limit
from unrolled.report.formatting import brief, clip, minus, signed, size, visible
from unrolled.report.page_view import rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

__all__ = ["save_figure", "triangle_figure"]

_FORMATS = (".pdf", ".png", ".svg")
_UNIT = {"score": "score (in units of the logit)", "contribution": "contribution to the logit"}
_INK, _SOFT = "#1b1d21", "#63676f"
# Above so many tokens a cell is too small for its number, and every k-th token alone bears its label.
_NUMBERED, _LABELLED = 14, 90
_HEAD = 0.85
"""Inches above the triangles, for the heading."""


def triangle_figure(account: Attribution, quantity: Quantity = "score", limit: float | None = None) -> Figure:
    """Draw the triangle of n-grams, one panel a direction, above the ledger in one line.

    A row holds the n-grams of one length, each centred over its tokens; the top is the whole sentence.

    Args:
        account: what is drawn.
        quantity: ``"score"`` or ``"contribution"``.
        limit: the value at the ends of the colour scale; set it to compare figures, otherwise
            :func:`~unrolled.report.colour.shared_limit` of this account.

    Returns:
        A matplotlib figure; show or save it as you please.

    Raises:
        UsageError: when matplotlib is missing, the sentence is empty, the quantity is unknown or the limit is
            not above zero.
        NonFiniteError: when the account holds NaN or infinity.
    """
    require_extra("figures", "a figure")
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    if quantity not in _UNIT:
        raise UsageError(f"unknown quantity {quantity!r}; expected one of: {', '.join(_UNIT)}")
    if not len(account):
        raise UsageError("the account has no tokens; expected at least one")
    if limit is not None and not limit > 0:
        raise UsageError(f"colour limit is {limit}; expected a number above 0")
    ends = limit if limit is not None else shared_limit([account], quantity) or 1.0
    count, panels = len(account), len(account.directions)
    cell = min(0.8, max(0.06, 10.0 / count))
    flat = max(len(visible(token)) for token in account.tokens) * 0.085 < cell
    foot = 0.35 if flat else 0.95
    height = cell * (0.5 if count <= _NUMBERED else 0.62) * count
    pitch = height + foot + (0.3 if panels > 1 else 0.0)
    width = max(4.6, cell * count)
    wide, tall = width + 1.6, _HEAD + max(2.0, panels * pitch)

    figure = Figure(figsize=(wide, tall), facecolor="white")
    mappable = ScalarMappable(Normalize(-ends, ends), colour_map())
    for d, direction in enumerate(account.directions):
        top = tall - _HEAD - d * pitch - (pitch - height - foot)
        axes = figure.add_axes((0.25 / wide, (top - height) / tall, width / wide, height / tall))
        axes.set_xlim(0, width / cell)
        axes.set_ylim(0, count)
        axes.set_axis_off()
        if panels > 1:
            axes.set_title(direction, loc="left", fontsize=9, color=_SOFT, pad=4)
        _draw_cells(axes, account, d, quantity, ends)
        _write_tokens(axes, account, cell, flat)
    length = min(2.0, tall - _HEAD)
    middle = (tall - _HEAD + (foot if flat else 0)) / 2
    place = ((width + 0.6) / wide, (middle - length / 2) / tall, 0.13 / wide, length / tall)
    _draw_scale(figure, place, mappable, ends, quantity)
    _write_heading(figure, account, 0.25 / wide, tall)
    return figure


def _draw_cells(axes: Axes, account: Attribution, d: int, quantity: Quantity, ends: float) -> None:
    from matplotlib.collections import PolyCollection

    count = len(account)
    matrix = account.triangle.scores if quantity == "score" else account.triangle.contributions
    corners, values = [], []
    for k, row in enumerate(rows(matrix[d], account.directions[d], count)):
        for start, value in enumerate(row):
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
                color=ink(colour(value, ends)),
            )


def _write_tokens(axes: Axes, account: Attribution, cell: float, flat: bool) -> None:
    """Write the sentence under its triangle: upright where all its words fit, else aslant."""
    every = -(-len(account) // _LABELLED)
    for k, token in enumerate(account.tokens):
        if k % every == 0:
            axes.annotate(
                clip(visible(token), 14),
                (k + 0.5, 0),
                xytext=(0, -5) if flat else (3, -5),
                textcoords="offset points",
                ha="center" if flat else "right",
                va="top",
                rotation=0 if flat else 45,
                rotation_mode="default" if flat else "anchor",
                fontsize=9 if flat else max(4.5, min(8.0, cell * 72 * every * 0.62)),
                color=_INK,
                parse_math=False,
            )


def _draw_scale(
    figure: Figure,
    place: tuple[float, float, float, float],
    mappable: ScalarMappable,
    ends: float,
    quantity: Quantity,
) -> None:
    bar = figure.colorbar(mappable, cax=figure.add_axes(place))
    marks = [-ends, -ends / 2, 0.0, ends / 2, ends]
    bar.set_ticks(marks, labels=[minus(f"{mark:+g}") if mark else "0" for mark in marks])
    bar.ax.tick_params(labelsize=8, length=2, color=_SOFT, labelcolor=_INK)
    bar.ax.axhline(0, color=_INK, linewidth=0.8)
    bar.ax.spines["outline"].set_visible(False)
    bar.set_label(_UNIT[quantity], fontsize=8, color=_INK)


def _write_heading(figure: Figure, account: Attribution, left: float, tall: float) -> None:
    ledger = account.ledger
    sum_line = " + ".join(
        f"{name} {minus(signed(value))}"
        for name, value in (
            ("n-grams", ledger.ngrams),
            ("initial state", ledger.initial),
            ("bias", ledger.bias),
            ("remainder", ledger.remainder),
        )
    )
    kind = "exact" if account.exact else "not exact"
    residual = minus(size(account.residual))
    for down, points, shade, text in (
        (0.18, 11.0, _INK, f"{clip(visible(account.target), 60)}: logit {minus(signed(ledger.logit))}"),
        (0.40, 7.5, _SOFT, f"= {sum_line}"),
        (0.56, 7.5, _SOFT, f"expansion {clip(visible(account.expansion), 60)}, {kind}, residual {residual}"),
    ):
        figure.text(left, 1 - down / tall, text, fontsize=points, color=shade, va="center", parse_math=False)


def save_figure(
    path: str | os.PathLike[str], account: Attribution, quantity: Quantity = "score", limit: float | None = None
) -> None:
    """Save the figure of :func:`triangle_figure`, whole or not at all.

    Args:
        path: its suffix says the format: ``.png``, ``.svg`` or ``.pdf``.
        account: what is drawn.
        quantity: ``"score"`` or ``"contribution"``.
        limit: the value at the ends of the colour scale.

    Raises:
        UsageError: when the suffix is another, or as :func:`triangle_figure` says.
        NonFiniteError: when the account holds NaN or infinity.
        FileError: when the path cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(f"cannot draw {os.fspath(path)!r}; expected a name that ends in one of: {', '.join(_FORMATS)}")
    figure = triangle_figure(account, quantity, limit)
    content = io.BytesIO()
    # Without a date the same account gives the same bytes.
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[suffix]
    figure.savefig(content, format=suffix[1:], dpi=200, bbox_inches="tight", pad_inches=0.1, metadata=undated)
    atomic_write(path, content.getvalue())
