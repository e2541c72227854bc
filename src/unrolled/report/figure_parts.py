"""What all figures have: two inks, a colour scale with an end, and lines of text above."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.report.formatting import clip, minus, signed, visible
from unrolled.report.page_view import ledger_parts, sum_of_ngrams, unit_before

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

__all__ = ["INK", "SOFT", "checked_limit", "draw_scale", "write_heading", "write_lines"]

INK, SOFT = "#1b1d21", "#63676f"


def checked_limit(limit: float | None) -> float | None:
    """Return the end of a colour scale that a user asked for; None for none.

    Raises:
        UsageError: If it is not above 0, or infinite.
    """
    given: object = limit
    if given is not None and not (isinstance(given, Real) and 0 < float(given) < math.inf):
        raise UsageError(f"colour limit is {limit!r}; expected a finite number above 0")
    return limit


def draw_scale(
    figure: Figure,
    place: tuple[float, float, float, float],
    mappable: ScalarMappable,
    marks: Sequence[float],
    name: str,
) -> Colorbar:
    """Draw the colour scale of a figure at a place of it, with numbers at these marks, and return it."""
    bar = figure.colorbar(mappable, cax=figure.add_axes(place))
    bar.set_ticks(list(marks), labels=[minus(f"{mark:+g}") if mark else "0" for mark in marks])
    bar.ax.tick_params(labelsize=8, length=2, color=SOFT, labelcolor=INK)
    bar.ax.spines["outline"].set_visible(False)
    bar.set_label(name, fontsize=8, color=INK)
    return bar


def write_lines(figure: Figure, left: float, tall: float, lines: Iterable[tuple[float, float, str, str]]) -> None:
    """Write lines above a figure that is ``tall`` inches high.

    Args:
        figure: The figure.
        left: Where they begin, from 0 to 1.
        tall: Its height in inches.
        lines: Of each its distance from the top in inches, its size in points, its colour and its text.
    """
    for down, points, shade, text in lines:
        figure.text(left, 1 - down / tall, text, fontsize=points, color=shade, va="center", parse_math=False)


def write_heading(figure: Figure, attribution: Attribution, left: float, tall: float) -> None:
    """Write the target, the ledger and the expansion above a figure."""
    total = f"{unit_before(attribution)}{minus(signed(attribution.ledger.logit))}"
    parts = ledger_parts(attribution.ledger, attribution.name)
    sum_line = " + ".join(f"{name} {minus(signed(value))}" for name, value in parts)
    lines = (
        (0.18, 11.0, INK, f"{clip(visible(attribution.target), 60)}: {total}"),
        (0.40, 7.5, SOFT, f"= {sum_line}"),
        (0.56, 7.5, SOFT, f"expansion {clip(visible(attribution.expansion), 60)}, {sum_of_ngrams(attribution)}"),
    )
    write_lines(figure, left, tall, lines)
