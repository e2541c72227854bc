"""A table with the columns of its texts and labels chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.tables.columns import Columns, choose_columns, choose_text
from unrolled.lab.data.tables.dialect import Dialect, read_records, sniff
from unrolled.lab.data.tables.header import FirstLine, count_above, kind_of_first_line
from unrolled.lab.data.text_files import check_escaped, iter_lines_escaped

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
    joined: int = 0
    """The number of fields of most rows, where the last separator alone separates two columns; else 0."""
    above: int = 0
    """Number of records above the header."""
    guessed: int = 0
    """The line of a header that is one by its length alone; else 0."""
    lines: Sequence[str] | None = None
    """The lines of standard input, which can be read once; None to read those of the file."""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line at which each row begins, and its fields."""
        records = read_records(self.path, self.dialect, self.lines)
        if self.header:
            next(islice(records, self.above, None), None)
        yield from ((line, _join(cells)) for line, cells in records) if self.joined else records

    def titles(self) -> Iterator[tuple[int, str]]:
        """Yield the lines above the header that are not blank, such as titles."""
        for line, fields in islice(read_records(self.path, self.dialect, self.lines), self.above):
            if any(fields):
                yield line, self.dialect.delimiter.join(fields)

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell whether a row is the header again, as where files were joined."""
        names, again = ([field.strip().lower() for field in fields] for fields in (self.header, cells))
        return len(names) > 1 and names == again

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
        other = self.dialect.delimiter != usual.delimiter or self.dialect.spaced
        parts = [f"separated by {self.dialect.name}"] if other else []
        names = tuple(field.strip().lower() for field in self.header)
        plain = (names[text], names[label]) == ("text", "label") if names else (text, label) == (0, self.width - 1)
        if self.joined > 2:  # whose columns are not those of the file
            first, last = ("text", "label") if text < label else ("label", "text")
            parts.append(
                f"the {first} is the first {self.joined - 1} of {self.joined} fields, the {last} is the last; if they "
                "are columns: --text-column and --label-column, by number from 1"
            )
        elif not plain:
            parts.append(self.chosen)
        return (f"{self.path}: {', '.join(parts)}",) if parts else ()

    @property
    def guess(self) -> tuple[str, ...]:
        """Say which line was taken for the header by its length alone."""
        said = "read as the names of the columns, since the texts below are longer; if it is an example: --no-header"
        return (f"{self.path}:{self.guessed}: {said}",) if self.guessed else ()


def open_table(path: Path, dialects: Sequence[Dialect], reading: Reading, kind: type[Corpus[object]]) -> TextTable:
    """Find out how a file writes its fields, whether it has a header, and which columns hold texts and labels."""
    dialect, above, header, rows, guessed = _begin(path, dialects, reading)
    joined = 0
    if not dialect.quotes and not header and reading.text_column is None and reading.label_column is None:
        joined = _width(header, rows, 2)  # a text in a file without quotes may contain tabs
        rows = list(map(_join, rows))
    columns = choose_columns(path, header, rows, reading, kind) if header or rows else Columns(0, 1)
    return TextTable(path, dialect, header, _width(header, rows, 2), columns, joined, above, guessed)


def open_texts(
    path: Path, dialects: Sequence[Dialect], reading: Reading, lines: Sequence[str] | None = None
) -> TextTable:
    """Do what :func:`open_table` does for a file whose labels, if it has any, are not read.

    ``lines`` are those of standard input, which ``path`` then names.
    """
    dialect, above, header, rows, guessed = _begin(path, dialects, reading, lines)
    text = choose_text(path, header, rows, reading) if header or rows else 0
    return TextTable(path, dialect, header, _width(header, rows, 1), Columns(text, text), 0, above, guessed, lines)


def _join(cells: list[str]) -> list[str]:
    """Make two columns of the last field and of all before it."""
    return cells if len(cells) < 3 else ["\t".join(cells[:-1]), cells[-1]]


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], default: int) -> int:
    """Return the number of columns: the header's, or that of most rows."""
    counts = Counter(len(row) for row in rows if any(row))
    return len(header) or (counts.most_common(1)[0][0] if counts else default)


class _Beginning(NamedTuple):
    """What the first lines of a file tell; the last fields are those of TextTable."""

    dialect: Dialect
    above: int = 0
    header: tuple[str, ...] = ()
    rows: Sequence[list[str]] = ()
    """A sample of the rows below the header."""
    guessed: int = 0


def _begin(path: Path, dialects: Sequence[Dialect], reading: Reading, lines: Sequence[str] | None = None) -> _Beginning:
    """Find out how the fields are written and which line is the header."""
    dialect = sniff(iter_lines_escaped(path) if lines is None else lines, dialects)
    records = read_records(path, dialect, lines)
    head = list(islice(records, _HEAD))
    if not head:
        return _Beginning(dialect)
    above = count_above([fields for _, fields in head], dialect.quotes, reading)
    line, first = head[above]
    rows = spread((fields for _, fields in chain(head[above + 1 :], records)), _SAMPLE)
    kind = kind_of_first_line(path, line, first, rows, reading)
    if kind is FirstLine.ROW:
        return _Beginning(dialect, rows=[*(fields for _, fields in head[: above + 1]), *rows])
    if foreign := next(filter(None, (check_escaped(path, line, name) for name in first)), None):
        raise foreign
    return _Beginning(dialect, above, tuple(first), rows, line if kind is FirstLine.GUESSED else 0)


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
