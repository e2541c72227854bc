"""Texts without labels, or with labels that are not read: a text a line, a column of a table, a key of JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.hub import hub_rows
from unrolled.lab.data.json_lines import read_json_objects
from unrolled.lab.data.reading import InvalidRow, Reading, only_valid
from unrolled.lab.data.tables.columns import choose_text
from unrolled.lab.data.tables.dialect import COMMAS, TABS
from unrolled.lab.data.tables.table import open_texts, spread
from unrolled.lab.data.text_files import find_escaped, malformed, numbered_lines, without_compression
from unrolled.laboratory import is_hub_dataset

__all__ = ["read_texts"]

_TABLES = {".csv": COMMAS, ".tsv": TABS, ".tab": TABS}
_JSON = (".jsonl", ".ndjson")
_SAMPLE = 2000


def read_texts(path: Path, reading: Reading, split: str = "test") -> Iterator[tuple[int, str]]:
    """Yield each text with the line at which it begins; empty ones stay, so that rows keep their places.

    Args:
        path: A table (.csv, .tsv, .tab), JSON lines (.jsonl, .ndjson), or any other file: every line is a text. Or
            ``hf:NAME`` or ``hf:FOLDER``, whose rows count as lines.
        reading: Which column holds the texts, and whether the first line may be a header.
        split: Which split of ``hf:NAME`` is read.

    Raises:
        FileError: If the file cannot be read.
        DataError: If it cannot be told which column holds the texts, or a text is not UTF-8.
    """
    suffix = without_compression(path).suffix.lower()
    if is_hub_dataset(str(path)):
        path, rows = hub_rows(str(path), split)
        found: Iterator[tuple[int, str]] = _json_texts(path, rows, reading)
    elif suffix in _TABLES:
        table = open_texts(path, _TABLES[suffix], reading)
        column = table.columns.text
        found = ((number, cells[column] if len(cells) == table.width else "") for number, cells in table.rows())
    elif suffix in _JSON:
        found = _json_texts(path, partial(read_json_objects, path), reading)
    elif reading.columns:
        raise UsageError(f"{reading.columns[0]} is given, but every line of {path} is a text; leave it out")
    else:
        found = numbered_lines(path)
    for number, text in found:
        if find_escaped(text):
            hint = "save the file with the encoding UTF-8"
            raise malformed(path, number, "UTF-8 text", repr(text.encode(errors="surrogateescape")), hint)
        yield number, text


def _json_texts(
    path: Path, objects: Callable[[], Iterator[tuple[int, Mapping[str, Any]] | InvalidRow]], reading: Reading
) -> Iterator[tuple[int, str]]:
    records = spread((each[1] for each in objects() if not isinstance(each, InvalidRow)), _SAMPLE)
    names = tuple(dict.fromkeys(key for record in records for key in record))
    if not names:
        raise DataError(f"{path}: expected one object in JSON a line, found none")
    rows = [["" if record.get(name) is None else str(record[name]) for name in names] for record in records]
    key = names[choose_text(path, names, rows, reading)]
    for number, record in only_valid(objects()):
        text = record.get(key)
        yield number, text if isinstance(text, str) else ""
