"""Files that a command is to write: what cannot be written is refused before anything is computed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from unrolled.errors import FileError, UsageError
from unrolled.file_suffixes import refuse_other_format

__all__ = ["check_new", "check_not_read", "is_standard_output"]

_STREAM = re.compile(r"/dev/(std(in|out|err)|fd/\d+)|/proc/(self|\d+)/fd/\d+")
"""Names of what a process has opened, which may be a file that a shell writes."""


def is_standard_output(path: Path | None) -> bool:
    """Tell whether a path is a name of standard output."""
    return str(path) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_new(path: Path | None, force: bool, *suffixes: str) -> None:
    """Refuse, before anything is computed, to write over a file, or under a suffix of another format.

    ``suffixes`` are those of what is written, the usual one first.
    """
    if path is None:
        return
    refuse_other_format(path, *suffixes)
    if str(path) == "-":
        raise UsageError(f"a file is written to a path, found -; give one, e.g. written{suffixes[0]}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the path of a file")
    if _STREAM.fullmatch(str(path)) or (path.exists() and not path.is_file()):
        raise FileError(f"{path} is no regular file; give the path of one, e.g. written{suffixes[0]}")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists: choose another path, or pass --force to overwrite it")
    parent = path.absolute().parent
    if parent.exists() and not parent.is_dir():
        raise FileError(f"{path} cannot be written: {path.parent} is a file; give a path in a folder")
    if not parent.exists():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist; create it first")
    try:
        # permissions do not tell what root or a file system that is read-only may; a link is written where it leads
        TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}; choose another folder") from error


def check_not_read(path: Path | None, read: Iterable[str | Path]) -> None:
    """Refuse to write over a file that the command reads, or that the run consists of, also with --force."""
    if path is None:
        return
    written = os.path.realpath(path)
    if any(written == os.path.realpath(each) or _is_same(path, Path(each)) for each in read):
        raise UsageError(f"{path} is a file that the command reads; choose another path")


def _is_same(path: Path, other: Path) -> bool:
    """Tell whether two names are of one file, as two hard links are."""
    return path.exists() and other.exists() and path.samefile(other)
