"""Print a table of results in a terminal; one that is too wide is printed in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unrolled.lab.papers.framework.table import Table

__all__ = ["print_table"]

_FIRST, _BORDER = 40, 3
"""Widest first column of a table that does not fit as a whole, and what the lines between columns take."""


def print_table(table: Table) -> None:
    """Print a table; each part of one that is too wide for the terminal begins with the columns that name the rows."""
    import rich.table
    from rich.console import Console

    console, rows = Console(), list(table.cells())
    widths = [_width(name, [row[k] for row in rows]) for k, name in enumerate(table.columns)]
    others = sum(width + _BORDER for width in widths[1:])
    widths[0] = min(widths[0], max(_FIRST, console.width - others - _BORDER - 1))
    console.print(table.title, style="bold", markup=False, highlight=False, soft_wrap=True)
    naming = table.naming
    if sum(widths[:naming]) > console.width // 2:
        naming = 1
    for columns in _parts(widths, naming, console.width):
        shown = rich.table.Table()
        for k in (*range(naming), *columns):
            shown.add_column(table.columns[k], width=widths[k], overflow="fold")
        for row in rows:
            shown.add_row(*(row[k] for k in (*range(naming), *columns)))
        console.print(shown, markup=False, highlight=False)


def _width(name: str, cells: Sequence[str]) -> int:
    """Return the width of a column, whose name may be broken between words."""
    return max(map(len, (*name.split(), *cells)), default=1)


def _parts(widths: Sequence[int], naming: int, width: int) -> list[list[int]]:
    """Divide the columns after the first ones, which name the rows, into parts that fit beside these."""
    parts: list[list[int]] = [[]]
    for k in range(naming, len(widths)):
        taken = sum(widths[each] + _BORDER for each in (*range(naming), *parts[-1], k)) + 1
        if parts[-1] and taken > width:
            parts.append([])
        parts[-1].append(k)
    return parts
