"""How a table separates and quotes its fields, found by reading its first lines in each way that is in use."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from unrolled.lab.data.tables.names import is_usual_name
from unrolled.lab.data.text_files import LONGEST_LINE, iter_lines_escaped, malformed

__all__ = ["COMMAS", "TABS", "Dialect", "QuoteError", "read_records", "sniff"]

_SAMPLE = 500  # lines
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_CARRIAGE_RETURN = "new-line character seen in unquoted field"  # the csv module's words; a line feed ends the record
_BYTE_ORDER_MARK = "\ufeff"  # within a file where files were joined that begin with it
csv.field_size_limit(LONGEST_LINE)  # csv's own limit, 131,072 characters, is shorter than a long document


class QuoteError(Exception):
    """A quote that is not closed, or stands in the wrong place, in the record that begins at ``line``."""

    def __init__(self, line: int, said: str) -> None:
        super().__init__(said)
        self.line = line


@dataclass(frozen=True)
class Dialect:
    """How fields are separated and quoted."""

    delimiter: str = ","
    quotes: bool = True
    """Whether a field may stand in double quotes; else a quote is a character like any other."""
    backslash: bool = False
    r"""Whether a quote in a quoted field is written ``\"``, not ``""``."""
    spaced: bool = False
    """Whether spaces may stand between a delimiter and the quotes of a field: ``good film, "positive"``."""

    @property
    def name(self) -> str:
        """The delimiter in words."""
        return _DELIMITERS[self.delimiter] + " and spaces, also before quotes" * self.spaced

    def read(self, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the line at which each record begins, and its fields; QuoteError for a wrong quote."""
        first, lines = _below_declaration(line.removeprefix(_BYTE_ORDER_MARK) for line in lines)
        if not self.quotes:
            for number, line in enumerate(lines, start=first):
                yield number, line.split(self.delimiter)
            return
        options = {"escapechar": "\\", "doublequote": False} if self.backslash else {}
        ended = ((line.rstrip(" ") if self.spaced else line) + "\n" for line in lines)
        space = self.spaced
        # the values of options are of two types, which mypy joins to object
        reader = csv.reader(ended, delimiter=self.delimiter, skipinitialspace=space, strict=True, **options)  # type: ignore[arg-type]
        begin = first
        try:
            for fields in reader:
                yield begin, fields
                begin = reader.line_num + first
        except csv.Error as error:
            raise QuoteError(begin, str(error)) from None


def _declared(line: str) -> str | None:
    """The delimiter that a line for Excel, ``sep=;``, declares."""
    found = re.fullmatch(r'"?sep=(.)"?', line)
    return found[1] if found else None


def _below_declaration(lines: Iterable[str]) -> tuple[int, Iterable[str]]:
    """Leave out a first line that declares the delimiter; with the number of the line that is then the first."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return 1, ()
    return (1, chain([first], rest)) if _declared(first) is None else (2, rest)


COMMAS = tuple(
    Dialect(delimiter, True, backslash, spaced)
    for spaced in (False, True)
    for delimiter in _DELIMITERS
    for backslash in (False, True)
)
"""What a file of comma-separated values may turn out to be."""
TABS = (Dialect("\t", quotes=False), Dialect("\t"))
"""What a file of tab-separated values may turn out to be."""


def sniff(lines: Iterable[str], dialects: Sequence[Dialect]) -> Dialect:
    """Choose the way of reading in which the first lines have the same number of fields, two or more.

    Earlier ``dialects`` win ties. A first line with a usual name of a column decides before the numbers do. Spaces
    before quotes are left out if that makes more rows alike, or if every field with a quote behind its first spaces
    ends with one.
    """
    lines = list(islice(lines, _SAMPLE + 1))
    whole = len(lines) <= _SAMPLE
    declared = _declared(lines[0]) if lines else None
    dialects = [each for each in dialects if each.delimiter == declared] or dialects
    return max(dialects, key=lambda dialect: _fit(dialect, lines, whole))


class _Fit(NamedTuple):
    """How well a dialect fits the first lines of a file; what comes first decides first."""

    named: bool = False
    """Whether it fits, and the first line has a usual name of a column."""
    fits: bool = False
    """Whether no quote is wrong, and most records have the same number of fields, two or more."""
    labels: bool = False
    """Whether a column may be one of labels."""
    share: float = 0.0
    """Share of the records with this number of fields."""
    begins: bool = False
    """Whether the first record has it too: a comma may stand in every text, but not in a header."""
    quoted: bool = False
    """Whether its quotes have a reason."""
    spaced: bool = False
    """Whether its spaces before quotes have one."""


_UNFIT = _Fit()


def _fit(dialect: Dialect, lines: Sequence[str], whole: bool) -> _Fit:
    records: list[list[str]] = []
    broken = False
    if dialect.backslash and not any('\\"' in line for line in lines):
        return _UNFIT
    if dialect.spaced and not any(f"{dialect.delimiter} " in line and '"' in line for line in lines):
        return _UNFIT
    try:
        records.extend(fields for _, fields in dialect.read(lines) if any(map(str.strip, fields)))
    except QuoteError:
        broken = True
    if not whole and records and not broken:
        records.pop()  # it may be cut
    if not records:
        return _UNFIT
    width, count = Counter(map(len, records)).most_common(1)[0]
    share = count / len(records) if width > 1 else 0.0
    named = width > 1 and any(map(is_usual_name, records[0])) and len(records[0]) == width
    fits = not broken and share > 0.5
    labels = fits and _has_labels([fields for fields in records[1:] if len(fields) == width])
    begins = fits and len(records[0]) == width
    quoted, spaced = _is_quoted(dialect, lines), _has_spaces(dialect, lines)
    return _Fit(named and fits, fits, labels, round(share, 2), begins, quoted, spaced)


def _has_labels(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a column may be one of labels: numbers, or few different values."""
    return any(
        4 * len(set(column)) <= len(column)
        or all(field.strip().lstrip("+-").replace(".", "", 1).isdecimal() for field in column)
        for column in zip(*rows, strict=True)
    )


def _is_quoted(dialect: Dialect, lines: Sequence[str]) -> bool:
    """Tell whether a reading with quotes has reason to be one: a field of a line ends a quote with a doubled one."""
    mark, bare = '\\"' if dialect.backslash else '""', " " * dialect.spaced
    whole = re.compile(rf'"(?:[^"]|{re.escape(mark)})*"')  # the end of a text of several lines may begin with a mark
    return dialect.quotes and any(
        mark in line and any(whole.fullmatch(field.strip(bare)) for field in line.split(dialect.delimiter))
        for line in lines
    )


def _has_spaces(dialect: Dialect, lines: Sequence[str]) -> bool:
    """Tell whether fields have quotes behind spaces and at their ends, and none has them in another way.

    A field such as ``"Yes" he said`` has quotes that belong to its text.
    """
    if not dialect.spaced:
        return False
    plain = replace(dialect, spaced=False)
    try:
        fields = [field for _, record in plain.read(lines) for field in record]
    except QuoteError:
        return False
    begun = [field.rstrip(" ") for field in fields if field.startswith(" ") and field.lstrip(" ").startswith('"')]
    return bool(begun) and all(re.fullmatch(r' +"(?:[^"]|"")*"', field) for field in begun)


def read_records(
    path: Path, dialect: Dialect = COMMAS[0], lines: Iterable[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each record of a table begins, and its fields; blank lines at the end are no records.

    ``lines`` are those of the file if None. A byte that is not UTF-8 is a lone surrogate in its field. DataError if a
    quote is not closed or misplaced, or a field is longer than a line may be.
    """
    blank: list[int] = []
    try:
        for begin, fields in dialect.read(iter_lines_escaped(path) if lines is None else lines):
            if not any(map(str.strip, fields)):
                blank.append(begin)
                continue
            yield from ((line, [""]) for line in blank)
            blank.clear()
            yield begin, fields
    except QuoteError as error:
        hint = "write a quote inside a quoted text twice, and no space between a quote and the separator behind it"
        expected, found = "fields in closed quotes, or without quotes", str(error)
        if _CARRIAGE_RETURN in found:
            expected, found = "lines that end in a line feed", "a carriage return outside quotes"
            hint = "save the file with the line ends of Windows or Unix, or put the field in quotes"
        raise malformed(path, error.line, expected, found, hint) from None
