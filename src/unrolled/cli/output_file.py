"""Files that a command is to write: what cannot be written is refused before anything is computed."""

from __future__ import annotations

from pathlib import Path

from unrolled.errors import FileError, UsageError

__all__ = ["check_new"]


def check_new(path: Path | None, force: bool) -> None:
    """Refuse, before anything is computed, to write over a file."""
    if path is None:
        return
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the path of a file")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists: choose another path, or pass --force to overwrite it")
    parent = path.absolute().parent
    if parent.exists() and not parent.is_dir():
        raise FileError(f"{path} cannot be written: {path.parent} is a file; give a path in a folder")
    if not parent.exists():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist; create it first")
