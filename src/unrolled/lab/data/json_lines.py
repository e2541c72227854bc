"""JSON lines: a file with an object on every line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["iter_objects"]


def iter_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a file of JSON objects, one a line.

    Args:
        path: the file, plain or packed.

    Yields:
        Each object with its line's number.

    Raises:
        DataError: when a line is not one whole object.
    """
    for number, line in enumerate(iter_lines(path), start=1):
        try:
            record = json.loads(line)
        # Brackets nested thousands deep, or a number of thousands of digits, are no less malformed than a lost quote.
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            hint = 'one a line, as {"text": "fine", "label": "good"}'
            raise malformed(path, number, "an object in JSON", repr(line), hint)
        yield number, record
