"""Files of JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.text_files import malformed, numbered_lines

__all__ = ["find_surrogate", "read_json_objects"]


def read_json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]] | InvalidRow]:
    """Yield each object of a file of JSON lines with its line's number; InvalidRow for any other line."""
    for number, line in numbered_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # also brackets nested thousands deep, or a number of thousands of digits
            record = None
        if isinstance(record, dict):
            yield number, record
        else:
            hint = 'one a line, as {"text": "fine", "label": "good"}'
            error = malformed(path, number, "an object in JSON", repr(line), hint)
            yield InvalidRow(path, number, "without one object in JSON", error)


def find_surrogate(text: str) -> str:
    """Return a surrogate without its partner, which JSON can write and UTF-8 cannot; empty if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""
