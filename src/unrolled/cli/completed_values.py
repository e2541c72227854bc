"""What a shell offers for an argument: run folders, and names, all without importing torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from unrolled.registry import names_in_source

__all__ = ["cell_names", "encoder_names", "expansion_names", "paper_items", "run_folders"]

_MARK = "config.json"
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
        if (path / _MARK).is_file():
            yield path
        elif depth:
            yield from _runs(path, "", depth - 1)


def encoder_names(incomplete: str) -> list[str]:
    """List the encoders."""
    names = {*_TORCH, *names_in_source("unrolled.cells"), *names_in_source("unrolled.composition")}
    return _begin(names, incomplete)


def cell_names(incomplete: str) -> list[str]:
    """List the cells."""
    return _begin(names_in_source("unrolled.cells"), incomplete)


def expansion_names(incomplete: str) -> list[str]:
    """List the expansions."""
    return _begin(names_in_source("unrolled.expansions"), incomplete)


def paper_items(incomplete: str) -> list[str]:
    """List the papers, and the items of a paper whose name has been typed: ``ours/``, then ``ours/phrases``."""
    items = names_in_source("unrolled.lab.papers")
    papers = {item.partition("/")[0] for item in items}
    names = items if "/" in incomplete or len(_begin(papers, incomplete)) == 1 else papers
    return _begin(names, incomplete)


def _begin(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
