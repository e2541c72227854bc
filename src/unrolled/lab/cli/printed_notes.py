"""Print notes once, also where torchrun started several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable

import typer

from unrolled.report.formatting import harmless

__all__ = ["is_first_process", "print_notes"]


def is_first_process() -> bool:
    """Tell whether this is the first of the processes that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def print_notes(notes: Iterable[str]) -> None:
    """Print what was chosen or left out while files were read, to stderr; under torchrun, in the first process."""
    if is_first_process():
        for note in notes:
            typer.echo(harmless(note), err=True)
