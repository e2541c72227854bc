"""Detect by its bytes what a file holds that is not UTF-8 text, and say how to convert it."""

from __future__ import annotations

import shlex

__all__ = [
    "BYTE_ORDER_MARK",
    "LONGEST_SIGNATURE",
    "detect_binary",
    "detect_marked_encoding",
    "detect_unmarked_encoding",
    "line_end_hint",
    "utf8_hint",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The mark with which some programs begin a file in UTF-8."""
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Encodings by their byte-order marks; that of UTF-32 is first, since it begins with one of UTF-16."""
_UNPACK = "unpack it, or compress it with gzip"
_BINARY = {
    b"PK\x03\x04": ("an archive, such as a workbook of Excel", "save a sheet as CSV in UTF-8, or unpack the archive"),
    b"\xd0\xcf\x11\xe0": ("an old workbook of Excel", "save a sheet as CSV in UTF-8"),
    b"PAR1\x15": ("a Parquet file", "write it as CSV: pandas.read_parquet(path).to_csv('texts.csv', index=False)"),
    b"BZh91AY&SY": ("a file compressed with bzip2", _UNPACK),
    b"(\xb5/\xfd": ("a file compressed with zstd", _UNPACK),
    b"\x1f\x8b": ("a file compressed with gzip", "give its name the suffix .gz"),
    b"\xfd7zXZ\0": ("a file compressed with xz", "give its name the suffix .xz"),
}
"""What a file is that is no text, by its first bytes, and what to do."""
LONGEST_SIGNATURE = max(map(len, _BINARY))
"""Number of first bytes that tell whether a file is one of those that :func:`detect_binary` knows."""


def detect_binary(start: bytes) -> tuple[str, str] | None:
    """Return what a file with these first bytes is, and what to do with it; None if it may be text."""
    return next((known for signature, known in _BINARY.items() if start.startswith(signature)), None)


def detect_marked_encoding(start: bytes) -> str:
    """Name the encoding that a byte-order mark declares, UTF-32 or UTF-16; empty if there is no such mark."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")


def detect_unmarked_encoding(line: bytes) -> str:
    """Name the encoding of a line of which every second byte, or nearly, is a NUL; empty for any other line."""
    even, odd = line[::2], line[1::2]
    if not even.count(0) and 2 * odd.count(0) > len(odd):
        return "UTF-16LE"
    return "UTF-16BE" if not odd.count(0) and 2 * even.count(0) > len(even) else ""


def utf8_hint(name: str | None, encoding: str) -> str:
    """Say how a file in an encoding is written in UTF-8: by the program that wrote it, or by a command.

    ``name`` is the file that the command converts; None for what no command can convert as it is.
    """
    hint = "save the file with the encoding UTF-8"
    if name is None:
        return hint
    return f"{hint}, or convert it: iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > {shlex.quote(f'utf8-{name}')}"


def line_end_hint(name: str | None) -> str:
    """Say how a file of an old Macintosh gets the line ends of today; ``name`` as in :func:`utf8_hint`."""
    hint = "save the file with the line ends of Windows or Unix"
    if name is None:
        return hint
    return f"{hint}, or convert it: tr '\\r' '\\n' < {shlex.quote(name)} > {shlex.quote(f'unix-{name}')}"
