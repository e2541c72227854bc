"""What a shell offers for an argument: run folders, and names, all without importing torch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from unrolled.registry import names_in_source

__all__ = ["cell_names", "encoder_names", "expansion_names", "run_folders"]

MARK = "config.json"
"""The file that makes a folder a run folder."""
_DEPTH, _MOST = 2, 5000
"""How many folders below the one that is being typed are searched, and how many entries are looked at."""
_TORCH = ("gru", "lstm", "rnn")


def run_folders(incomplete: str) -> list[str]:
    """List the run folders whose path begins with what was typed."""
    head, slash, tail = incomplete.rpartition("/")
    base = Path(head or slash or ".")
    try:
        found = sorted(islice(_runs(base, tail, _DEPTH), _MOST))
    except OSError:
        return []
    return [f"{head}{slash}{path.relative_to(base).as_posix()}" for path in found]


def _runs(folder: Path, begins: str, depth: int) -> Iterator[Path]:
    for path in islice(folder.iterdir(), _MOST):
        if not path.name.startswith(begins) or (path.name.startswith(".") and not begins) or not path.is_dir():
            continue
        if (path / MARK).is_file():
            yield path
        elif depth:
            yield from _runs(path, "", depth - 1)


def encoder_names(incomplete: str) -> list[str]:
    """List the encoders."""
    names = {*_TORCH, *names_in_source("unrolled.cells"), *names_in_source("unrolled.composition")}
    return sorted(name for name in names if name.startswith(incomplete))


def cell_names(incomplete: str) -> list[str]:
    """List the cells."""
    return [name for name in names_in_source("unrolled.cells") if name.startswith(incomplete)]


def expansion_names(incomplete: str) -> list[str]:
    """List the expansions."""
    return [name for name in names_in_source("unrolled.expansions") if name.startswith(incomplete)]
