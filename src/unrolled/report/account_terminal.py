"""Show an account in a terminal. It is readable without colour, since every number has its sign."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from unrolled.report.account_view import AccountView
from unrolled.report.formatting import signed, visible
from unrolled.report.terminal import FAINT, Sentence, print_to_text, spaced, sum_table

__all__ = ["render", "to_text"]


def render(view: AccountView) -> RenderableType:
    """Return what ``rich.print`` or a ``Console`` prints."""
    heading = Text.assemble(
        (visible(view.target), "bold"),
        f"  {signed(view.output)}  ",
        (view.method, FAINT),
    )
    limit = view.limit
    blocks: list[RenderableType] = [heading]
    for group in view.shown:
        blocks.append(Group(Text(visible(group.name), FAINT), Sentence(group.labels, group.values, limit)))
    blocks.append(sum_table(view.entries, ("output", view.output)))
    if view.named:
        table = Table.grid(padding=(0, 2))
        table.add_column(style=FAINT, overflow="ellipsis", no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_row(Text("biases and constants"), Text())
        for name, value in view.named:
            table.add_row(Text(f"  {visible(name)}"), Text(signed(value)))
        blocks.append(table)
    blocks.append(Text("\n".join(visible(note) for note in (view.verdict, *view.notes)), style=FAINT))
    return spaced(blocks)


def to_text(view: AccountView, width: int = 100, colour: bool = False) -> str:
    """Return an account as text of at most ``width`` columns, with ANSI colours if ``colour``."""
    return print_to_text(render(view), width, colour)
