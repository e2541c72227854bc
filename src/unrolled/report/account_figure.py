"""Draw an account as a matplotlib figure: a bar for each input, with the ledger as a line above.

It is drawn on a ``Figure`` of its own and does not use pyplot's global state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from unrolled.extras import require_extra
from unrolled.report.account_view import AccountView
from unrolled.report.colour import colour
from unrolled.report.figure_parts import INK, SOFT, checked_limit, write_lines
from unrolled.report.formatting import brief, clip, fitted, letters, minus, signed, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["account_figure"]

_LABELLED = 60
"""Up to this many bars of a group, every one has a label and a number."""
_LINE = 0.24
"""Inches of one bar of such a group; the bars of a longer one are narrower."""
_NARROW = 1 / 72
"""Inches: lower bars are lines of this width."""
_LEAST_ROOM = 1.7
"""Inches left of the bars; it holds the name of a bar."""
_LETTER = 0.072
"""Inches of a letter there, of those of the usual width the widest."""


def account_figure(view: AccountView, limit: float | None = None) -> Figure:
    """Draw one example of an account, the first input at the top.

    Args:
        view: The example.
        limit: Value at the ends of the colour scale; None for the largest value.

    Raises:
        UsageError: If matplotlib is missing or the limit is not above 0.
        NonFiniteError: If the account holds NaN or infinity.
    """
    require_extra("figures", "a figure")
    from unrolled.report.shown_figure import ShownFigure

    ends = checked_limit(limit) or view.limit or 1.0
    rows = _rows(view)
    head, foot = 0.9, 0.45
    body = max(rows[-1].place + 0.8 * _LINE if rows else 0.0, 1.0)
    wide, tall = 7.2, head + body + foot
    figure = ShownFigure(figsize=(wide, tall), facecolor="white")
    room = max(_LEAST_ROOM, _LETTER * max(map(letters, map(_name, rows)), default=0.0))
    axes = figure.add_axes((room / wide, foot / tall, (wide - room - 0.3) / wide, body / tall))
    axes.set_ylim(body, 0.0)
    _draw_bars(axes, rows, ends)
    _name_rows(axes, rows)
    _write_values(axes, rows, ends)
    ledger = " + ".join(f"{name} {minus(signed(value))}" for name, value in view.entries)
    lines = (
        (0.2, 11.0, INK, f"{clip(visible(view.target), 60)}: {minus(signed(view.output))}"),
        (0.42, 7.5, SOFT, f"= {clip(visible(ledger), 130)}"),
        (0.58, 7.5, SOFT, view.method),
        (0.74, 7.5, SOFT, view.verdict),
    )
    write_lines(figure, 0.25 / wide, tall, lines)
    return figure


def _draw_bars(axes: Axes, rows: Sequence[_Row], ends: float) -> None:
    """Draw the bars, with room beside them for their numbers."""
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import MaxNLocator

    bars = [(row.place, row.value, 0.78 * row.line) for row in rows if row.value is not None]
    high, narrow = ([bar for bar in bars if (bar[2] < _NARROW) == is_narrow] for is_narrow in (False, True))
    places, values, heights = zip(*high, strict=True) if high else ((), (), ())
    axes.barh(places, values, heights, color=[colour(value, ends) for value in values], edgecolor="none")
    # of rectangles as narrow as these most would fall between two pixels; lines have a width of their own
    narrow.sort(key=lambda bar: abs(bar[1]))  # the largest are drawn over the others
    lines = [((0.0, place), (value, place)) for place, value, _ in narrow]
    axes.add_collection(
        LineCollection(lines, colors=[colour(value, ends) for _, value, _ in narrow], linewidths=72 * _NARROW),
        autolim=False,
    )
    axes.axvline(0, color=SOFT, linewidth=0.6)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="x", length=2, labelsize=7.5, color=SOFT, labelcolor=SOFT)
    axes.xaxis.set_major_locator(MaxNLocator(7, symmetric=True))
    axes.set_xlabel("contribution to the output", fontsize=8, color=SOFT)
    least, most = (of(0.0, *(value for _, value, _ in bars)) for of in (min, max))
    room = 0.12 * ((most - least) or ends)
    axes.set_xlim(least - room, most + room)


def _name_rows(axes: Axes, rows: Sequence[_Row]) -> None:
    """Write the names of bars and of groups at the left."""
    axes.tick_params(axis="y", length=0)
    named = [row for row in rows if row.label]
    ticks = axes.set_yticks([row.place for row in named], [*map(_name, named)], fontsize=8)
    for tick, row in zip(ticks, named, strict=True):
        tick.label1.set(parse_math=False, color=INK if row.value is not None else SOFT)


def _write_values(axes: Axes, rows: Sequence[_Row], ends: float) -> None:
    """Write the number of each bar that is high enough beside it."""
    for row in rows:
        if row.value is not None and row.line == _LINE:
            axes.annotate(
                minus(brief(row.value, ends)),
                (row.value, row.place),
                xytext=(3 if row.value >= 0 else -3, 0),
                textcoords="offset points",
                ha="left" if row.value >= 0 else "right",
                va="center",
                fontsize=7.5,
                color=SOFT,
            )


class _Row(NamedTuple):
    """A bar, or the name of a group above its bars; place and height are in inches from the top."""

    label: str
    place: float
    line: float = _LINE
    value: float | None = None


def _name(row: _Row) -> str:
    """Shorten the name of a bar, or of a group."""
    return fitted(row.label, 22 if row.value is not None else 34)


def _rows(view: AccountView) -> list[_Row]:
    """List the rows of the figure: where there are several groups, each begins with its name."""
    rows, place = [], 0.8 * _LINE
    for group in view.shown:
        if len(view.shown) > 1:
            rows.append(_Row(visible(group.name), place))
            place += _LINE
        every = -(-len(group.labels) // _LABELLED)
        line = _LINE if every == 1 else _LINE * _LABELLED / len(group.labels)
        for k, (label, value) in enumerate(zip(group.labels, group.values, strict=True)):
            rows.append(_Row(visible(label) if k % every == 0 else "", place, line, value))
            place += line if k < len(group.labels) - 1 else _LINE
    return rows
