"""Texts without labels, or with labels that are not read: a text a line, a column of a table, a key of JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.formats import FORMATS
from unrolled.lab.data.formats.labelled_text import Csv, JsonLines, Tsv
from unrolled.lab.data.hub import hub_rows
from unrolled.lab.data.json_lines import is_json_object, read_json_objects, sample_table
from unrolled.lab.data.reading import InvalidRow, Reading, line_list, only_valid
from unrolled.lab.data.tables.columns import choose_text
from unrolled.lab.data.tables.dialect import QuoteError
from unrolled.lab.data.tables.header import names_surely
from unrolled.lab.data.tables.names import TEXTS, USUAL_TEXTS, is_usual_name
from unrolled.lab.data.tables.table import TextTable, open_texts
from unrolled.lab.data.text_files import (
    STANDARD_INPUT,
    check_escaped,
    checked_lines,
    numbered_lines,
    standard_input_escaped,
    without_compression,
    without_escapes,
)
from unrolled.named_sources import is_hub_dataset
from unrolled.report.formatting import clip

__all__ = ["read_texts"]

_DIALECTS = {suffix: format.dialects for format in (Csv, Tsv) for suffix in format.suffixes}


def read_texts(
    path: Path, reading: Reading, split: str | None = None, say: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[int, str]]:
    """Yield each text with the line at which it begins; empty ones stay, so that rows keep their places.

    Args:
        path: A table (.csv, .tsv, .tab), JSON lines (.jsonl, .ndjson, .json), or any other file: every line is a text.
            Or ``hf:NAME`` or ``hf:FOLDER``, whose rows count as lines; or ``-``, standard input: a table if its first
            line surely names the column of the texts, JSON lines if it is an object, else a text a line.
        reading: Which column holds the texts, and whether the first line may be a header.
        split: Which split of ``hf:NAME`` is read; by default test.
        say: Receives a line about the column that was chosen, and one about rows of other widths, whose text is empty.

    Raises:
        FileError: If the file cannot be read.
        UsageError: If a file is asked for a split, or the suffix is that of a format with labels, such as CoNLL.
        DataError: If it cannot be told which column holds the texts, or a text is not UTF-8.
    """
    if is_hub_dataset(str(path)):
        path, rows = hub_rows(str(path), split or "test")
        found = _json_texts(path, rows, reading, say)
    else:
        found = _texts_of_file(path, reading, split, say)
    for number, text in found:
        if foreign := check_escaped(path, number, text):
            raise foreign
        yield number, text


def _texts_of_file(
    path: Path, reading: Reading, split: str | None, say: Callable[[str], None]
) -> Iterator[tuple[int, str]]:
    """Open a file by its suffix, or standard input; bytes that are not UTF-8 stay escaped."""
    if str(path) == "-":
        return _texts_of_standard_input(reading, split, say)
    if split is not None:
        raise UsageError(f"--split is {split}, but {path} is a file without splits; leave it out")
    suffix = without_compression(path).suffix.lower()
    if suffix in _DIALECTS:
        return _table_texts(open_texts(path, _DIALECTS[suffix], reading), reading, say)
    if suffix in JsonLines.suffixes:
        return _json_texts(path, partial(read_json_objects, path), reading, say)
    if reading.columns:
        raise UsageError(f"{reading.columns[0]} is given, but every line of {path} is a text; leave it out")
    if other := next((name for name, member in FORMATS.members.items() if suffix in member.suffixes), None):
        raise UsageError(
            f"{path}: the suffix {suffix!r} is that of the format {other}, which is read for a training or an "
            "evaluation only; give .csv, .tsv, .jsonl, or a text a line"
        )
    return numbered_lines(path)


def _texts_of_standard_input(
    reading: Reading, split: str | None, say: Callable[[str], None]
) -> Iterator[tuple[int, str]]:
    """Read a text a line as it comes; or all of a table or of JSON lines, which the first line tells."""
    if given := [*reading.columns, *([] if split is None else ["--split"])]:
        raise UsageError(
            f"{given[0]} is given, but standard input is read as a text a line, as JSON lines, or as a table whose "
            "first line names the texts; give the path of a file"
        )
    lines = standard_input_escaped()
    first = list(islice(lines, 1))
    lines = chain(first, lines)
    if any(map(is_json_object, first)):
        say(f"{STANDARD_INPUT}: read as JSON lines")
        return _json_texts(STANDARD_INPUT, partial(read_json_objects, STANDARD_INPUT, list(lines)), reading, say)
    if not any(_names_columns(line, reading) for line in first):
        if names := [line.strip() for line in first if _is_trained_name(line, reading)]:
            said = f"{names[0]!r} is read as a text; the column of the training has this name"
            say(f"{STANDARD_INPUT}:1: {said}: if it is no text, leave the line out")
        return checked_lines(lines, STANDARD_INPUT)
    said = "read as a table, since its first line names the columns; if it is a text: give a file in .txt"
    say(f"{STANDARD_INPUT}: {said}")
    return _table_texts(open_texts(STANDARD_INPUT, Csv.dialects, reading, list(lines)), reading, say)


def _is_trained_name(line: str, reading: Reading) -> bool:
    """Tell whether a line is the name of the column of texts that a model was trained on, alone."""
    name = line.removeprefix("\ufeff").strip().strip('"').strip().lower()
    return reading.trained_text is not None and name == reading.trained_text.strip().lower()


def _names_columns(line: str, reading: Reading) -> bool:
    """Tell whether a line is the header of a table with a column of texts, in one of the ways to separate fields."""
    for dialect in Csv.dialects:
        try:
            fields = [field.strip() for _, record in dialect.read([line]) for field in record]
        except QuoteError:
            continue
        usual = all(map(is_usual_name, fields)) and (TEXTS | USUAL_TEXTS).intersection(map(str.lower, fields))
        if len(fields) > 1 and (usual or names_surely(fields, reading)):
            return True
    return False


def _table_texts(table: TextTable, reading: Reading, say: Callable[[str], None]) -> Iterator[tuple[int, str]]:
    column, others = table.columns.text, []
    _say_column(table.path, table.header, column, reading, say)
    if table.dialect.spaced:
        say(f"{table.path}: separated by {table.dialect.name}")
    for line in table.guess:
        say(line)
    for number, title in table.titles():
        say(f"{table.path}:{number}: above the names of the columns, so not read: {clip(without_escapes(title), 40)}")
    for number, cells in table.rows():
        if table.is_header(cells):
            say(f"{table.path}:{number}: the names of the columns again, so not read")
            continue
        if any(cells) and len(cells) != table.width:
            others.append(number)
        yield number, cells[column] if len(cells) == table.width else ""
    if others:
        rows = "row" if len(others) == 1 else "rows"
        told = f"{len(others):,} {rows} with more or fewer columns than {table.width}, read as without a text"
        say(f"{table.path}: {told} ({line_list(others)})")


def _say_column(path: Path, names: Sequence[str], column: int, reading: Reading, say: Callable[[str], None]) -> None:
    """Say which of several columns was chosen, if it is none that this library documents and nobody named it."""
    if len(names) > 1 and reading.text_column is None and names[column].strip().lower() not in TEXTS:
        say(f"{path}: texts from {names[column].strip()!r}")


def _json_texts(
    path: Path,
    objects: Callable[[], Iterator[tuple[int, Mapping[str, Any]] | InvalidRow]],
    reading: Reading,
    say: Callable[[str], None],
) -> Iterator[tuple[int, str]]:
    names, rows = sample_table(objects())
    if not names:
        raise DataError(f"{path}: expected one object in JSON a line, found none")
    column = choose_text(path, names, rows, reading)
    _say_column(path, names, column, reading, say)
    key = names[column]
    for number, record in only_valid(objects()):
        text = record.get(key)
        yield number, text if isinstance(text, str) else ""
