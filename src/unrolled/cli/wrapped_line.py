"""A line that is longer than the terminal is wide."""

from __future__ import annotations

import typer

__all__ = ["print_wrapped"]

_INDENT = 4


def print_wrapped(line: str) -> None:
    """Print a line; a terminal that is narrower gets it broken between words, which would break it inside them."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if not console.is_terminal or cell_len(line) <= console.width:  # a file or a pipe keeps a line for each item
        typer.echo(line)
        return
    first = Text(line).wrap(console, console.width)[0].plain
    rest = Text(line[len(first) :].strip()).wrap(console, console.width - _INDENT)
    typer.echo("\n".join([first.rstrip(), *(" " * _INDENT + part.plain.strip() for part in rest)]))
