"""Comma-separated values, as RFC 4180 describes them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["iter_records"]


def iter_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the records of a table; a quoted field may have commas, line ends, and quotes written twice.

    Args:
        path: the file, plain or packed.

    Yields:
        Each record's fields, with the line that it begins at.

    Raises:
        DataError: when a quote is not closed, stands where none may, or a field is longer than 131,072 characters.
    """
    reader = csv.reader((line + "\n" for line in iter_lines(path)), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "a quote inside a quoted text is written twice"
            raise malformed(path, begin, "fields in closed quotes, or without quotes", str(error), hint) from None
        yield begin, fields
