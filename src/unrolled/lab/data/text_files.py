"""Finding data files and reading their lines, plain or packed."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from unrolled.errors import DataError, FileError, UsageError

__all__ = [
    "FOLDER_VARIABLE",
    "LONGEST_LINE",
    "find_file",
    "iter_lines",
    "malformed",
    "read_lines",
    "without_compression",
]

FOLDER_VARIABLE = "UNROLLED_DATA"
LONGEST_LINE = 4 * 2**20
"""The most bytes a line may have: three hundred times the longest film review; the memory that reading needs."""
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 40


def find_file(name: str, folder: Path | None = None) -> Path:
    """Find a data file: plain, or packed with xz or gzip.

    Args:
        name: its path inside the data folder, without the packing's suffix: ``"sst/train.txt"``.
        folder: the data folder; the environment variable ``UNROLLED_DATA`` when left out.

    Returns:
        The path of the first of ``name``, ``name.xz`` and ``name.gz`` that exists.

    Raises:
        UsageError: when no folder was named.
        FileError: when the folder holds none of the three.
    """
    if folder is None:
        variable = os.environ.get(FOLDER_VARIABLE)
        if not variable:
            raise UsageError(
                f"no data folder; expected --data-dir, or the variable {FOLDER_VARIABLE}, "
                f"to name the folder that holds {name}"
            )
        folder = Path(variable)
    for suffix in ("", *_OPENERS):
        path = folder / (name + suffix)
        if path.is_file():
            return path
    raise FileError(f"no {name} in {folder}; expected {name}, {name}.xz or {name}.gz")


def without_compression(path: Path) -> Path:
    """Name a file as it is called unpacked.

    Args:
        path: ``train.tsv.xz``, ``train.tsv``.

    Returns:
        The path without ``.xz`` or ``.gz``: ``train.tsv``.
    """
    return path.with_suffix("") if path.suffix in _OPENERS else path


def malformed(path: Path, line: int, expected: str, found: str, hint: str) -> DataError:
    """Say on one line what is wrong with a line of a file.

    Args:
        path: the file.
        line: the line's number, from 1.
        expected: what should stand there.
        found: what does; cut off when it is long.
        hint: how to mend it.

    Returns:
        The error, to be raised.
    """
    if len(found) > _SHOWN:
        found = found[: _SHOWN - 1] + "…"
    return DataError(f"{path}:{line}: expected {expected}, found {found}; {hint}")


def iter_lines(path: Path) -> Iterator[str]:
    r"""Read a UTF-8 text file line by line, without the lines' ends, in the memory that one line needs.

    Lines end at ``\n`` or ``\r\n`` alone: texts hold other characters that ``str.splitlines`` would break at
    (U+0085, U+2028). A byte-order mark at the file's beginning is no part of the text.

    Args:
        path: a plain file, or one packed as its suffix ``.xz`` or ``.gz`` says.

    Yields:
        Each line; nothing for an empty file.

    Raises:
        FileError: when the file cannot be opened or read.
        DataError: when it is truncated, not packed as its suffix says, not UTF-8, or holds a NUL or a line longer
            than ``LONGEST_LINE``.
    """
    opener: Callable[..., Any] = _OPENERS.get(path.suffix, Path.open)
    number = 1
    try:
        with opener(path, "rb") as file:
            while raw := _read_line(file, path, number):
                yield _decode(raw, path, number)
                number += 1
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        hint = "fetch or pack it again"
        raise malformed(path, number, f"a whole {path.suffix} file", str(error).rstrip("."), hint) from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_lines(path: Path) -> list[str]:
    """Read all lines of a UTF-8 text file at once; see :func:`iter_lines`.

    Args:
        path: a plain file, or one packed as its suffix ``.xz`` or ``.gz`` says.

    Returns:
        The lines; an empty file has none.
    """
    return list(iter_lines(path))


def _read_line(file: BinaryIO, path: Path, number: int) -> bytes:
    """Read one line with its end; nothing at the file's end."""
    raw = file.readline(LONGEST_LINE + 1)
    if len(raw) > LONGEST_LINE:
        raise malformed(
            path,
            number,
            f"a line of at most {LONGEST_LINE:,} bytes",
            "a longer one",
            "are its line ends missing, or is it no text?",
        )
    return raw


def _decode(raw: bytes, path: Path, number: int) -> str:
    r"""Make text of a line: without byte-order mark, ``\n`` and ``\r\n``."""
    if number == 1:
        raw = raw.removeprefix(_BYTE_ORDER_MARK)
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"the byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        raise malformed(path, number, "UTF-8 text", found, "save the file with the encoding UTF-8") from None
    if "\0" in line:
        found = f"a NUL at column {line.index(chr(0)) + 1}"
        raise malformed(path, number, "text", found, "the file is damaged, or no text")
    return line.removesuffix("\n").removesuffix("\r")
