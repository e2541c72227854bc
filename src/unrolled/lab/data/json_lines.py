"""Files of JSON lines: one object a line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.tables.table import spread
from unrolled.lab.data.text_files import malformed, numbered_lines, without_compression

__all__ = ["find_surrogate", "is_json_object", "read_json_objects", "sample_table"]

_SAMPLE = 2000


class _KeyTwiceError(Exception):
    """An object has two values under one key: the message shows both."""


def read_json_objects(
    path: Path, lines: Iterable[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]] | InvalidRow]:
    """Yield each object of a file of JSON lines with its line's number; InvalidRow for any other line.

    ``lines`` are those of the file if None.

    Raises:
        DataError: If the file is one list of objects, or its objects are written over several lines.
    """
    for number, line in numbered_lines(path, lines):
        try:
            record = json.loads(line, object_pairs_hook=_object)
        except _KeyTwiceError as twice:
            error = malformed(path, number, "each key once in an object", str(twice), "leave one of them out")
            yield InvalidRow(path, number, "with a key twice", error)
            continue
        except (ValueError, RecursionError):  # also brackets nested thousands deep, or a number of thousands of digits
            record = None
        if isinstance(record, dict):
            yield number, record
        elif number == 1 and (program := _program(line, record)):
            raise malformed(path, 1, "one object in JSON a line", repr(line), _hint(path, program))
        else:
            hint = 'one a line, as {"text": "fine", "label": "good"}'
            error = malformed(path, number, "an object in JSON", repr(line), hint)
            yield InvalidRow(path, number, "without one object in JSON", error)


def is_json_object(line: str) -> bool:
    """Tell whether a line is one object in JSON."""
    try:
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its keys and values; the parser would keep the last value of a key without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if json.dumps(found[key]) != json.dumps(value):  # 1 and true are equal in Python, and two labels
                first, last = (json.dumps({key: each}, ensure_ascii=False)[1:-1] for each in (value, found[key]))
                raise _KeyTwiceError(f"{first} and {last}")
    return found


def sample_table(
    objects: Iterable[tuple[int, Mapping[str, Any]] | InvalidRow],
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the keys of at most 2,000 objects from the whole file, and a row of text for each of these objects."""
    records = spread((each[1] for each in objects if not isinstance(each, InvalidRow)), _SAMPLE)
    names = tuple(dict.fromkeys(key for record in records for key in record))
    return names, [["" if record.get(name) is None else str(record[name]) for name in names] for record in records]


def _program(line: str, record: Any) -> str:
    """Return the program of jq that writes a file's objects on lines, by its first line; empty if there is none."""
    if line.lstrip().startswith("[") and (record is None or (record and isinstance(record[0], dict))):
        return ".[]"
    return "." if line.strip() == "{" else ""


def _hint(path: Path, program: str) -> str:
    """Say how the objects of a file are written on lines."""
    hint = "write each object on a line of its own"
    if without_compression(path) != path:
        return hint
    new = shlex.quote(f"{path.stem}{'-lines' * (path.suffix == '.jsonl')}.jsonl")
    return f"{hint}: jq -c '{program}' {shlex.quote(path.name)} > {new}"


def find_surrogate(text: str) -> str:
    """Return a surrogate without its partner, which JSON can write and UTF-8 cannot; empty if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""
