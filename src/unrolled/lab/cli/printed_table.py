"""Print a table of results in a terminal; one that is too wide is printed in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unrolled.lab.papers.framework.table import Table

__all__ = ["print_table"]

_FIRST, _BORDER = 40, 3
"""Widest first column of a table, and what the lines between columns take."""


def print_table(table: Table) -> None:
    """Print a table; each part of one that is too wide for the terminal begins with the first column."""
    import rich.table
    from rich.console import Console

    console, rows = Console(), list(table.cells())
    widths = [_width(name, [row[k] for row in rows]) for k, name in enumerate(table.columns)]
    widths[0] = min(widths[0], _FIRST)
    console.print(table.title, style="bold", markup=False, highlight=False, soft_wrap=True)
    for columns in _parts(widths, console.width):
        shown = rich.table.Table()
        for k in (0, *columns):
            shown.add_column(table.columns[k], width=widths[k], overflow="fold")
        for row in rows:
            shown.add_row(*(row[k] for k in (0, *columns)))
        console.print(shown, markup=False, highlight=False)


def _width(name: str, cells: Sequence[str]) -> int:
    """Return the width of a column, whose name may be broken between words."""
    return max(map(len, (*name.split(), *cells)), default=1)


def _parts(widths: Sequence[int], width: int) -> list[list[int]]:
    """Divide the columns after the first into parts that fit beside it."""
    parts: list[list[int]] = [[]]
    for k in range(1, len(widths)):
        taken = sum(widths[each] + _BORDER for each in (0, *parts[-1], k)) + 1
        if parts[-1] and taken > width:
            parts.append([])
        parts[-1].append(k)
    return parts
