"""Arguments and options that several commands have: run folders, and the folder of the datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.cli.completed_values import run_folders

__all__ = ["DataFolder", "RunDataFolder", "run_argument"]

DataFolder = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the datasets; by default the variable UNROLLED_DATA.")
]

RunDataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the datasets; by default the variable UNROLLED_DATA. The run's own files, if they have moved, "
        "are looked for at their places below the deepest folder that held all of them, then by their names alone.",
    ),
]


def run_argument(help_text: str) -> Any:
    """Declare the argument RUN: a shell offers run folders for it."""
    return typer.Argument(metavar="RUN", help=help_text, autocompletion=run_folders)
