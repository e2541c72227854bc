"""Show in a terminal what of a model can be opened."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from unrolled.report.formatting import visible
from unrolled.report.terminal import print_to_text, spaced

__all__ = ["check_to_text"]

_HEADINGS = ("part", "type", "calls", "reads", "opens", "cost")


def check_to_text(rows: Sequence[Sequence[str]], remarks: Sequence[tuple[str, str]], width: int) -> str:
    """Return a table with one line a part of the model, and a line for each call or reason below it.

    Args:
        rows: Of each part its name, type, number of calls, what it reads, what opens it, and at what cost.
        remarks: Of each part its name, and the call that opens it or why it does not open.
        width: Number of columns.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(each)) for each in row))
    below = [Text(f"{visible(part)}: {visible(remark)}") for part, remark in remarks]
    blocks: list[RenderableType] = [table, *below]
    return print_to_text(spaced(blocks), width, colour=False)
