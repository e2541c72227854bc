"""Texts with one label each, in three formats: comma-separated values, tab-separated values, and JSON lines.

The label is a class for classification, the relation between two marked entities for relations, and a number for
regression. A header, the user, or what the columns hold says where text and label stand.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from unicodedata import normalize

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Corpus, Example, RatedText, Regression, Relations
from unrolled.lab.data.formats.base import RowFormat, ValidRow
from unrolled.lab.data.json_lines import find_surrogate, read_json_objects, sample_table
from unrolled.lab.data.reading import PLAIN, InvalidRow, Reading
from unrolled.lab.data.tables.columns import choose_columns
from unrolled.lab.data.tables.dialect import COMMAS, TABS, Dialect
from unrolled.lab.data.tables.table import open_table
from unrolled.lab.data.tables.values import number_hint
from unrolled.lab.data.text_files import check_escaped, malformed
from unrolled.lab.data.tokenise import tokenise, tokenise_marked

__all__ = ["Csv", "JsonLines", "LabelledFormat", "Tsv"]

_LARGEST = 1e18
"""Ratings are squared in float32, whose largest number is 3e38."""


class Labelled(NamedTuple):
    """A text with its label."""

    text: str
    """As it is written."""
    tokens: tuple[str, ...]
    label: str
    origin: tuple[str, int]
    """Its file, and the line at which it begins."""


class LabelledFormat(RowFormat[Labelled]):
    """A format whose examples are a text and a label."""

    kinds = (Classification, Regression, Relations)
    has_columns = True

    def __init__(self, reading: Reading = PLAIN) -> None:
        super().__init__(reading)
        self.named: set[tuple[str, str]] = set()
        """The names of the columns of text and label in the files that were read, where columns have names."""

    @abstractmethod
    def fields(self, path: Path, kind: type[Corpus[Any]]) -> Iterator[tuple[int, str, str] | InvalidRow]:
        """Yield the line at which each example of a file begins, its text and its label, as they are written."""

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[ValidRow[Labelled] | InvalidRow]:
        """Read each text as tokens, with its label."""
        for path in paths:
            for found in self.fields(path, kind):
                yield found if isinstance(found, InvalidRow) else _row(path, *found, kind)

    def follow_training(self) -> None:
        """Take the columns of the training where another file has them too: what these hold there may mislead."""
        if len(self.named) == 1:
            ((text, label),) = self.named
            self.reading = replace(self.reading, trained_text=text, trained_label=label)

    def labels(self, value: Labelled, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Return the class; nothing for a number."""
        return () if issubclass(kind, Regression) else (value.label,)

    def corpus(self, name: str, kind: type[Corpus[Any]], splits: Mapping[str, tuple[Labelled, ...]]) -> Corpus[Any]:
        """Build the corpus; its classes are in alphabetical order. DataError if there is only one class."""
        classes = () if issubclass(kind, Regression) else tuple(sorted({value.label for value in splits["train"]}))
        numbers = {label: number for number, label in enumerate(classes)}
        examples = {key: tuple(self.example(each, kind, numbers) for each in split) for key, split in splits.items()}
        if not issubclass(kind, Classification):
            return Regression(name=name, **examples)
        if len(classes) < 2:
            raise DataError(
                f"expected at least two labels, found {classes[0]!r} on every example; name the column of the labels "
                "with --label-column"
            )
        return kind(name=name, labels=classes, **examples)

    def example(self, value: Labelled, kind: type[Corpus[Any]], known: Mapping[str, int]) -> Any:
        """Return a rated text, or a text with the index of its class."""
        text, tokens, label, origin = value
        return (
            RatedText(tokens, float(label), text, origin)
            if issubclass(kind, Regression)
            else Example(tokens, known[label], text, origin)
        )


def _row(path: Path, line: int, text: str, label: str, kind: type[Corpus[Any]]) -> ValidRow[Labelled] | InvalidRow:
    """Check a text and its label."""
    label = normalize("NFC", label.strip())  # programs write accents in two ways, which look the same
    for field in (text, label):
        if foreign := check_escaped(path, line, field):
            return InvalidRow(path, line, "not in UTF-8", foreign)
    tokens = () if issubclass(kind, Relations) else tuple(tokenise(text))
    if not text.strip() or not (tokens or issubclass(kind, Relations)):
        found = f"the label {label!r} alone" if label else "an empty row"
        return InvalidRow(
            path, line, "without a text", malformed(path, line, "a text", found, "every label needs a text")
        )
    if not label:
        hint = "every text needs a label"
        return InvalidRow(
            path, line, "without a label", malformed(path, line, "a label", f"the text {text!r} alone", hint)
        )
    if issubclass(kind, Regression) and (wrong := _check_number(path, line, label)):
        return InvalidRow(path, line, "without a number as its label", wrong)
    if issubclass(kind, Relations):
        try:
            tokens = tokenise_marked(text)
        except DataError as fault:
            error = DataError(f"{path}:{line}: {fault}; mark the two entities of the relation")
            return InvalidRow(path, line, "without two marked entities", error)
    return ValidRow(path, line, Labelled(text, tokens, label, (str(path), line)))


def _check_number(path: Path, line: int, label: str) -> DataError | None:
    try:
        value = float(label.replace("_", "?"))  # Python reads 1_000
    except ValueError:
        hint = number_hint(label) or "for labels that are names, train classify"
        return malformed(path, line, "a number", repr(label), hint)
    if not math.isfinite(value):
        return malformed(path, line, "a finite number", repr(label), "leave the example out")
    if abs(value) > _LARGEST:
        hint = "divide all labels by a constant"
        return malformed(path, line, f"a number of at most {_LARGEST:g} in size", repr(label), hint)
    return None


class _Separated(LabelledFormat):
    """A table with a separator between its fields."""

    dialects: ClassVar[Sequence[Dialect]]
    hint: ClassVar[str]
    """What helps if a row has too many or too few columns."""

    def fields(self, path: Path, kind: type[Corpus[Any]]) -> Iterator[tuple[int, str, str] | InvalidRow]:
        """Read the texts and labels; every row has as many columns as the header, or as the longest row without one."""
        table = open_table(path, self.dialects, self.reading, kind)
        self.notes += table.note(self.dialects[0])
        self.columns[table.chosen] = None
        if table.header:
            self.named.add((table.name(table.columns.text), table.name(table.columns.label)))
        for number, title in table.titles():
            error = malformed(path, number, "the names of the columns", repr(title), "delete the lines above them")
            yield InvalidRow(path, number, "above the names of the columns", error)
        for number, cells in table.rows():
            if table.is_header(cells):
                found = repr(table.dialect.delimiter.join(cells))
                error = malformed(path, number, "an example", found, "delete the names of the columns here")
                yield InvalidRow(path, number, "with the names of the columns again", error)
            elif len(cells) == table.width:
                yield number, cells[table.columns.text], cells[table.columns.label]
            elif any(cells):
                found = f"{len(cells)} in {table.dialect.delimiter.join(cells)!r}"
                error = malformed(path, number, f"{table.width} columns", found, self.hint)
                yield InvalidRow(path, number, "with more or fewer columns", error)
            else:
                yield number, "", ""


class Csv(_Separated):
    """Comma-separated values as in RFC 4180: a quoted field may contain commas, quotes and line ends.

    Semicolons, tabs and bars are found as well, and quotes that a backslash precedes.
    """

    name = "csv"
    suffixes = (".csv",)
    description = 'text,label: "fine, really",good; or a header and any columns; separated by , or ; or | or tabs'
    dialects = COMMAS
    hint = "put a text or a label that contains the separator in quotes"


class Tsv(_Separated):
    """Tab-separated values; without a header, the last tab separates the text from the label."""

    name = "tsv"
    suffixes = (".tsv", ".tab")
    description = "text<TAB>label, one a line; or a header and any columns"
    dialects = TABS
    hint = "separate the columns by one tab each"


class JsonLines(LabelledFormat):
    """One JSON object a line, with a text and a label; other keys are ignored."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson", ".json")
    description = '{"text": "…", "label": "…"}, one object a line; a label may be a number, other keys may be named'

    def fields(self, path: Path, kind: type[Corpus[Any]]) -> Iterator[tuple[int, str, str] | InvalidRow]:
        """Read the texts and labels; both must be text that UTF-8 can encode, or the label a finite number."""
        keys = self.keys(path, kind)
        for found in self.objects(path):
            yield found if isinstance(found, InvalidRow) else _fields_of(path, *found, *keys)

    def objects(self, path: Path) -> Iterator[tuple[int, Mapping[str, Any]] | InvalidRow]:
        """Yield each object with its line."""
        return read_json_objects(path)

    def keys(self, path: Path, kind: type[Corpus[Any]]) -> tuple[str, str]:
        """Return the keys of the text and of the label."""
        names, rows = sample_table(self.objects(path))
        trained = {self.reading.trained_text, self.reading.trained_label} & set(names)
        if not self.reading.columns and not trained and (not names or {"text", "label"} <= set(names)):
            return "text", "label"
        chosen = choose_columns(path, names, rows, self.reading, kind)
        keys = names[chosen.text], names[chosen.label]
        said = f"texts from {keys[0]!r}, labels from {keys[1]!r}"
        self.notes.append(f"{path}: {said}")
        self.columns[said] = None
        self.named.add(keys)
        return keys


def _fields_of(
    path: Path, number: int, record: Mapping[str, Any], text_key: str, label_key: str
) -> tuple[int, str, str] | InvalidRow:
    """Check the types of a text and a label in JSON."""

    def invalid(fault: str, expected: str, found: str, hint: str) -> InvalidRow:
        return InvalidRow(path, number, fault, malformed(path, number, expected, found, hint))

    for key, fault in ((text_key, "without a text"), (label_key, "without a label")):
        if key not in record:
            found = f"only {', '.join(map(json.dumps, record))}" if record else "none"
            return invalid(fault, f"the key {json.dumps(key)}", found, "an example has a text and a label")
    text, label = record[text_key], record[label_key]
    if not isinstance(text, str) or "\0" in text:
        expected = f"a string for {json.dumps(text_key)}"
        nested = isinstance(text, dict | list)
        hint = "write the text that it contains under a key of its own" if nested else "in quotes, and without NUL"
        return invalid("without a text", expected, json.dumps(text), hint)
    if isinstance(label, bool):
        label = json.dumps(label)
    if not isinstance(label, str | int | float):
        expected, hint = f"a string or a number for {json.dumps(label_key)}", "write a name in quotes, or a number"
        if isinstance(label, dict | list):
            hint = "write the label that it contains under a key of its own"
        return invalid("without a label", expected, json.dumps(label), hint)
    if isinstance(label, float) and not math.isfinite(label):
        hint = "leave the example out, or write a name in quotes"
        return invalid("without a number as its label", "a finite number", json.dumps(label), hint)
    label = str(label)
    for value in (text, label):
        if surrogate := find_surrogate(value):
            hint = "write a character beyond U+FFFF as two surrogates, or as itself"
            return invalid("not in UTF-8", "whole characters", json.dumps(surrogate), hint)
    return number, text, label
