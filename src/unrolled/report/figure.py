"""Draw an attribution as a matplotlib figure, and save it."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.report.series_figure import series_figure
from unrolled.report.spans import Quantity
from unrolled.report.triangle_figure import triangle_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawn", "check_format", "draw_figure", "render_figure", "save_figure"]

Drawn = Quantity | Literal["features"]
"""What a figure shows: a quantity of the triangle, or the numbers that the model read and their contributions."""

_FORMATS = (".pdf", ".png", ".svg")


def draw_figure(attribution: Attribution, quantity: Drawn | None = None, limit: float | None = None) -> Figure:
    """Draw numbers over time where there are features, else the triangle of phrases; or what is asked for.

    Args:
        attribution: What is drawn.
        quantity: What to draw; None for the default.
        limit: Value at the ends of the colour scale; None for the largest one.

    Raises:
        UsageError: If matplotlib is missing, the attribution does not have what is asked for, or the limit is not above
            zero.
        NonFiniteError: If the attribution holds NaN or infinity.
    """
    if quantity == "features" or (quantity is None and attribution.features is not None):
        return series_figure(attribution, limit)
    return triangle_figure(attribution, quantity or "phrase", limit)


def check_format(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a figure's name, which sets its format; UsageError if it is another one."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(f"cannot draw {os.fspath(path)!r}; expected a name that ends in one of: {', '.join(_FORMATS)}")
    return suffix


def save_figure(path: str | os.PathLike[str], attribution: Attribution) -> None:
    """Save the figure of :func:`draw_figure`, whole or not at all.

    The suffix of ``path`` sets the format: ``.png``, ``.svg`` or ``.pdf``.

    Raises:
        UsageError: If the suffix is another one, or as in :func:`draw_figure`.
        NonFiniteError: If the attribution holds NaN or infinity.
        FileError: If the file cannot be written.
    """
    atomic_write(path, render_figure(attribution, check_format(path)))


def render_figure(attribution: Attribution, suffix: str) -> bytes:
    """Return the figure of :func:`draw_figure` as a file with this suffix, of those of :func:`check_format`."""
    figure = draw_figure(attribution)
    content = io.BytesIO()
    # without a date the same attribution gives the same bytes
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[suffix]
    figure.savefig(content, format=suffix[1:], dpi=200, bbox_inches="tight", pad_inches=0.1, metadata=undated)
    return content.getvalue()
