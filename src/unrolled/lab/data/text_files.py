"""Read the lines of text files; a file may be compressed with xz or gzip."""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from unrolled.errors import DataError, FileError
from unrolled.lab.data.content_detection import (
    BYTE_ORDER_MARK,
    LONGEST_SIGNATURE,
    detect_binary,
    detect_marked_encoding,
    detect_unmarked_encoding,
    line_end_hint,
    utf8_hint,
)

__all__ = [
    "BROKEN_COMPRESSION",
    "DECOMPRESSORS",
    "LONGEST_LINE",
    "STANDARD_INPUT",
    "check_escaped",
    "check_text",
    "checked_lines",
    "iter_lines",
    "iter_lines_escaped",
    "malformed",
    "numbered_lines",
    "standard_input_escaped",
    "without_compression",
    "without_escapes",
]

LONGEST_LINE = 4 * 2**20
"""The maximal number of bytes of a line: 300 times the longest film review. It limits the memory that reading needs."""
DECOMPRESSORS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
"""How to open a compressed file, by its suffix."""
BROKEN_COMPRESSION = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
"""What Python raises for a file that is truncated, or not compressed as its suffix says."""
_ESCAPED = 0xDC00  # the error handler surrogateescape adds it to a byte
_SHOWN = 40
_LIKELIEST = "WINDOWS-1252"  # the encoding of most texts with bytes that are not UTF-8
STANDARD_INPUT = Path("standard input")
"""How standard input is named to the user."""


def without_compression(path: Path) -> Path:
    """Remove a suffix ``.xz`` or ``.gz``: ``train.tsv.xz`` becomes ``train.tsv``."""
    return path.with_suffix("") if path.suffix in DECOMPRESSORS else path


def malformed(path: Path, line: int, expected: str, found: str, hint: str) -> DataError:
    """Return an error of one line; ``found`` is shortened to 40 characters."""
    if len(found) > _SHOWN:
        found = found[: _SHOWN - 1] + "…"
    return DataError(f"{path}:{line}: expected {expected}, found {found}; {hint}")


def iter_lines(path: Path) -> Iterator[str]:
    r"""Read a UTF-8 text file, plain or compressed, line by line; memory holds one line.

    Lines end at ``\n`` or ``\r\n`` only, because texts contain other characters at which ``str.splitlines`` would
    break (U+0085, U+2028). A byte-order mark at the beginning of the file is ignored.

    Returns:
        Each line without its end.

    Raises:
        FileError: If the file cannot be opened or read.
        DataError: If it is truncated, not compressed as its suffix says, not UTF-8, or contains a NUL or a line longer
            than ``LONGEST_LINE``, or its lines end in carriage returns alone.
    """
    return (line for _, line in checked_lines(iter_lines_escaped(path), path))


def _without_foreign_bytes(line: str, path: Path, number: int) -> str:
    """Return a line that is UTF-8; DataError for any other."""
    if column := _find_escaped(line):
        byte = ord(line[column - 1]) - _ESCAPED
        found = f"the byte 0x{byte:02x} at column {len(line[: column - 1].encode(errors='surrogateescape')) + 1}"
        raise malformed(path, number, "UTF-8 text", found, utf8_hint(_convertible_name(path), _LIKELIEST))
    return line


def _convertible_name(path: Path) -> str | None:
    """Return the name of a file that a command can convert as it is; None for standard input and compressed files."""
    return path.name if path != STANDARD_INPUT and without_compression(path) == path else None


def without_escapes(text: str) -> str:
    """Return a text of :func:`iter_lines_escaped` for display: a mark stands for each byte that was not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _find_escaped(text: str) -> int:
    """Return the column, from 1, of the first byte of :func:`iter_lines_escaped` that was not UTF-8; 0 if none is."""
    if text.isascii():
        return 0
    return next((place for place, letter in enumerate(text, start=1) if 0x80 <= ord(letter) - _ESCAPED <= 0xFF), 0)


def check_escaped(path: Path, line: int, field: str) -> DataError | None:
    """Return the error about the first byte of a field of :func:`iter_lines_escaped` that was not UTF-8, if any."""
    column = _find_escaped(field)
    if not column:
        return None
    found = f"the byte 0x{ord(field[column - 1]) - _ESCAPED:02x} in {without_escapes(field)!r}"
    return malformed(path, line, "UTF-8 text", found, utf8_hint(_convertible_name(path), _LIKELIEST))


def iter_lines_escaped(path: Path) -> Iterator[str]:
    """Read lines as :func:`iter_lines` does, but keep a byte that is not UTF-8 as a lone surrogate."""
    opener: Callable[..., Any] = DECOMPRESSORS.get(path.suffix, Path.open)
    number = 1
    try:
        with opener(path, "rb") as file:
            while raw := _read_line(file, path, number):
                yield _decode(raw, path, number)
                number += 1
    except BROKEN_COMPRESSION as error:
        hint = "download or compress it again"
        raise malformed(path, number, f"a whole {path.suffix} file", str(error).rstrip("."), hint) from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def standard_input_escaped() -> Iterator[str]:
    """Read standard input as :func:`iter_lines_escaped` does a file."""
    for number, line in enumerate(sys.stdin, start=1):
        yield _decode(line.encode(errors="surrogateescape"), STANDARD_INPUT, number)


def checked_lines(lines: Iterable[str], path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line of :func:`iter_lines_escaped` with its number; DataError for one that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        yield number, _without_foreign_bytes(line, path, number)


def check_text(path: Path) -> None:
    """Refuse a file that is no text by its first bytes; DataError. A file that cannot be read is left to its reader."""
    try:
        with path.open("rb") as file:
            start = file.read(LONGEST_SIGNATURE)
    except OSError:
        return
    _refuse_binary(path, start)


def numbered_lines(path: Path, lines: Iterable[str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, but not the blank lines at the end; ``lines`` are those of the file if None."""
    blank: list[tuple[int, str]] = []
    for number, line in checked_lines(iter_lines_escaped(path) if lines is None else lines, path):
        if line and not line.isspace():
            yield from blank
            blank.clear()
            yield number, line
        else:
            blank.append((number, line))


def _read_line(file: BinaryIO, path: Path, number: int) -> bytes:
    raw = file.readline(LONGEST_LINE + 1)
    if len(raw) > LONGEST_LINE:
        expected, hint = f"a line of at most {LONGEST_LINE:,} bytes", "check the line ends, and that it is a text file"
        raise malformed(path, number, expected, "a longer one", hint)
    return raw


def _refuse_binary(path: Path, start: bytes) -> None:
    if (known := detect_binary(start)) is not None:
        found, hint = known
        raise DataError(f"{path}:1: expected text, found {found}; {hint}")


def _decode(raw: bytes, path: Path, number: int) -> str:
    if number == 1:
        name = _convertible_name(path)
        if encoding := detect_marked_encoding(raw):
            raise malformed(path, 1, "UTF-8 text", encoding, utf8_hint(name, encoding))
        _refuse_binary(path, raw)
        raw = raw.removeprefix(BYTE_ORDER_MARK)
        if b"\r" in raw.rstrip(b"\r") and not raw.endswith(b"\n"):  # the whole file: it has no line feed
            raise malformed(path, 1, "lines that end in a line feed", "carriage returns alone", line_end_hint(name))
        if encoding := detect_unmarked_encoding(raw):
            found = f"{encoding} without a byte-order mark"
            raise malformed(path, 1, "UTF-8 text", found, utf8_hint(name, encoding))
    line = raw.decode("utf-8", errors="surrogateescape")
    if "\0" in line:
        found = f"a NUL at column {line.index(chr(0)) + 1}"
        raise malformed(path, number, "text", found, "the file is damaged, or is not a text file")
    return line.removesuffix("\n").removesuffix("\r")
