"""A table with the columns of its texts and labels chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.tables.columns import Columns, choose_columns, choose_text, has_header, is_usual_name
from unrolled.lab.data.tables.dialect import Dialect, read_records, sniff
from unrolled.lab.data.text_files import check_escaped

__all__ = ["TextTable", "open_table", "open_texts", "spread"]

_SAMPLE = 4000  # rows from which the columns are chosen
_HEAD = 10  # rows among which the header is
T = TypeVar("T")


@dataclass(frozen=True)
class TextTable:
    """A file, how its fields are written, and where its texts and labels stand."""

    path: Path
    dialect: Dialect
    header: tuple[str, ...]
    """The names of the columns; empty if the first line is a row."""
    width: int
    """Number of columns."""
    columns: Columns
    joined: bool = False
    """Whether the last separator alone separates two columns."""
    above: int = 0
    """Number of lines above the header, which are rows that do not fit."""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line at which each row begins, and its fields."""
        records = read_records(self.path, self.dialect)
        yield from islice(records, self.above)
        if self.header:
            next(records, None)
        yield from ((line, _join(cells)) for line, cells in records) if self.joined else records

    def name(self, column: int) -> str:
        """Name a column by its header, or by its number."""
        return self.header[column].strip() if self.header else f"column {column + 1}"

    @property
    def chosen(self) -> str:
        """The columns of the texts and of the labels, as a line of text."""
        return f"texts from {self.name(self.columns.text)!r}, labels from {self.name(self.columns.label)!r}"

    def note(self, usual: Dialect) -> tuple[str, ...]:
        """Say what was chosen, where it was neither the columns ``text`` and ``label`` nor the first and the last."""
        text, label = self.columns.text, self.columns.label
        parts = [f"separated by {self.dialect.name}"] if self.dialect.delimiter != usual.delimiter else []
        names = tuple(field.strip().lower() for field in self.header)
        plain = (names[text], names[label]) == ("text", "label") if names else (text, label) == (0, self.width - 1)
        if not plain:
            parts.append(self.chosen)
        return (f"{self.path}: {', '.join(parts)}",) if parts else ()


def open_table(path: Path, dialects: Sequence[Dialect], reading: Reading, kind: type[Corpus[object]]) -> TextTable:
    """Find out how a file writes its fields, whether it has a header, and which columns hold texts and labels."""
    dialect, above, header, rows = _begin(path, dialects, reading)
    joined = not dialect.quotes and not header and reading.text_column is None and reading.label_column is None
    if joined:  # a text in a file without quotes may contain tabs
        rows = list(map(_join, rows))
    columns = choose_columns(path, header, rows, reading, kind) if header or rows else Columns(0, 1)
    return TextTable(path, dialect, header, _width(header, rows, 2), columns, joined, above)


def open_texts(path: Path, dialects: Sequence[Dialect], reading: Reading) -> TextTable:
    """Do what :func:`open_table` does for a file whose labels, if it has any, are not read."""
    dialect, above, header, rows = _begin(path, dialects, reading)
    text = choose_text(path, header, rows, reading) if header or rows else 0
    return TextTable(path, dialect, header, _width(header, rows, 1), Columns(text, text), above=above)


def _join(cells: list[str]) -> list[str]:
    """Make two columns of the last field and of all before it."""
    return cells if len(cells) < 3 else ["\t".join(cells[:-1]), cells[-1]]


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], default: int) -> int:
    """Return the number of columns: the header's, or that of most rows."""
    counts = Counter(len(row) for row in rows if any(row))
    return len(header) or (counts.most_common(1)[0][0] if counts else default)


def _begin(
    path: Path, dialects: Sequence[Dialect], reading: Reading
) -> tuple[Dialect, int, tuple[str, ...], list[list[str]]]:
    """Return the dialect, the number of lines above the header, the header, and a sample of the rows below it."""
    dialect = sniff(path, dialects)
    records = read_records(path, dialect)
    head = list(islice(records, _HEAD))
    if not head:
        return dialect, 0, (), []
    above = _titles([fields for _, fields in head]) if dialect.quotes else 0
    line, first = head[above]
    rows = spread((fields for _, fields in chain(head[above + 1 :], records)), _SAMPLE)
    if has_header(path, first, rows, reading):
        if foreign := next(filter(None, (check_escaped(path, line, name) for name in first)), None):
            raise foreign
        return dialect, above, tuple(first), rows
    return dialect, 0, (), [*(fields for _, fields in head[: above + 1]), *rows]


def _titles(head: Sequence[Sequence[str]]) -> int:
    """Count the lines of one field, titles and comments, above the first of as many as most: it may be a header."""
    usual = Counter(map(len, head)).most_common(1)[0][0]
    place = next((place for place, fields in enumerate(head) if len(fields) > 1), 0)
    return 0 if is_usual_name(head[0][0]) or len(head[place]) != usual else place


def spread(items: Iterable[T], most: int) -> list[T]:
    """Keep at most ``most`` items at equal distances over the whole: a file may be sorted by label."""
    kept: list[T] = []
    every = 1
    for place, item in enumerate(items):
        if place % every == 0:
            kept.append(item)
            if len(kept) == most:
                kept = kept[::2]
                every *= 2
    return kept
