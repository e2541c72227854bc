"""Draw an account as a matplotlib figure: a bar for each input, with the ledger as a line above.

It is drawn on a ``Figure`` of its own and does not use pyplot's global state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unrolled.extras import require_extra
from unrolled.report.account_view import AccountView
from unrolled.report.colour import colour
from unrolled.report.figure_parts import INK, SOFT, checked_limit, write_lines
from unrolled.report.formatting import brief, clip, minus, signed, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["account_figure"]

_LABELLED = 60
"""Up to this many bars, every one has a label and a number."""
_LINE = 0.24
"""Inches of one bar."""


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
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    ends = checked_limit(limit) or view.limit or 1.0
    several = len(view.shown) > 1
    inputs = [
        (f"{group.name}: {label}" if several and k == 0 else label, value)
        for group in view.shown
        for k, (label, value) in enumerate(zip(group.labels, group.values, strict=True))
    ]
    count = len(inputs)
    every = -(-count // _LABELLED)
    line = _LINE if every == 1 else _LINE * _LABELLED / count
    head, foot = 0.9, 0.45
    body = max(line * (count + 0.6), 1.0)
    wide, tall = 7.2, head + body + foot
    figure = Figure(figsize=(wide, tall), facecolor="white")
    axes = figure.add_axes((1.7 / wide, foot / tall, (wide - 2.0) / wide, body / tall))
    values = [value for _, value in inputs]
    axes.barh(range(count), values, height=0.78, color=[colour(value, ends) for value in values], edgecolor="none")
    axes.axvline(0, color=SOFT, linewidth=0.6)
    axes.set_ylim(count - 0.2, -0.8)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=2, labelsize=7.5, color=SOFT, labelcolor=SOFT)
    axes.xaxis.set_major_locator(MaxNLocator(7, symmetric=True))
    axes.set_xlabel("contribution to the output", fontsize=8, color=SOFT)
    shown = range(0, count, every)
    ticks = axes.set_yticks(shown, [clip(visible(inputs[k][0]), 24) for k in shown], fontsize=8 if every == 1 else 6.5)
    for tick in ticks:
        tick.label1.set(parse_math=False, color=INK)
    span = (max(0.0, *values, 0.0) - min(0.0, *values, 0.0)) or ends
    axes.set_xlim(min(0.0, *values, 0.0) - 0.12 * span, max(0.0, *values, 0.0) + 0.12 * span)
    for place, value in enumerate(values if every == 1 else ()):
        axes.annotate(
            minus(brief(value, ends)),
            (value, place),
            xytext=(3 if value >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if value >= 0 else "right",
            va="center",
            fontsize=7.5,
            color=SOFT,
        )
    ledger = " + ".join(f"{name} {minus(signed(value))}" for name, value in view.entries)
    lines = (
        (0.2, 11.0, INK, f"{clip(visible(view.target), 60)}: {minus(signed(view.output))}"),
        (0.42, 7.5, SOFT, f"= {clip(visible(ledger), 130)}"),
        (0.58, 7.5, SOFT, f"recurrent networks by {clip(visible(view.expansion), 40)}, all else by shares"),
        (0.74, 7.5, SOFT, view.verdict),
    )
    write_lines(figure, 0.25 / wide, tall, lines)
    return figure
