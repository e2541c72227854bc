r"""Texts with one label each, in three formats: comma-separated values, tab-separated values, and JSON lines.

The label is a class for classification, the relation between two marked entities for relations, and a number for
regression. Two columns of a table may be named in a header; otherwise the text is first and the label is last.
"""

from __future__ import annotations

import csv
import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Corpus, Example, RatedText, Regression, Relations
from unrolled.lab.data.formats.base import Row, RowFormat
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import tokenise, tokenise_marked

__all__ = ["Csv", "JsonLines", "LabelledFormat", "Tsv", "find_columns", "read_csv_records", "read_json_objects"]

_TEXT_NAMES = frozenset({"text", "sentence"})
_LABEL_NAMES = frozenset({"label", "class", "rating", "relation"})

Labelled = tuple[tuple[str, ...], str]


class LabelledFormat(RowFormat[tuple[tuple[str, ...], str]]):
    """A format whose examples are a text and a label."""

    kinds = (Classification, Regression, Relations)

    @abstractmethod
    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Yield the line at which each example of a file begins, its text and its label, as they are written."""

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Labelled]]:
        """Read each text as tokens, with its label."""
        for path in paths:
            for line, text, label in self.fields(path):
                label = label.strip()
                if not text.strip():
                    raise malformed(path, line, "a text", f"the label {label!r} alone", "every label needs a text")
                if not label:
                    raise malformed(path, line, "a label", f"the text {text!r} alone", "every text needs a label")
                if issubclass(kind, Regression):
                    _check_number(path, line, label)
                yield Row(path, line, (_tokens(path, line, text, kind), label))

    def labels(self, value: Labelled, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Return the class; nothing for a number."""
        return () if issubclass(kind, Regression) else (value[1],)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],
        train: Sequence[Labelled],
        dev: Sequence[Labelled],
        test: Sequence[Labelled],
    ) -> Corpus[Any]:
        """Build the corpus; its classes are in alphabetical order. DataError if there is only one class."""
        classes = () if issubclass(kind, Regression) else tuple(sorted({label for _, label in train}))
        splits = {
            key: tuple(self.example(value, kind, classes) for value in split)
            for key, split in {"train": train, "dev": dev, "test": test}.items()
        }
        if not issubclass(kind, Classification):
            return Regression(name=name, **splits)
        if len(classes) < 2:
            raise DataError(
                f"expected at least two labels, found {classes[0]!r} on every example; the label is the last column"
            )
        return kind(name=name, labels=classes, **splits)

    def example(self, value: Labelled, kind: type[Corpus[Any]], known: Sequence[str]) -> Any:
        """Return a rated text, or a text with the index of its class in ``known``."""
        tokens, label = value
        return RatedText(tokens, float(label)) if issubclass(kind, Regression) else Example(tokens, known.index(label))


def _tokens(path: Path, line: int, text: str, kind: type[Corpus[Any]]) -> tuple[str, ...]:
    if not issubclass(kind, Relations):
        return tuple(tokenise(text))
    try:
        return tokenise_marked(text)
    except DataError as error:
        raise DataError(f"{path}:{line}: {error}; mark the two entities of the relation") from None


def _check_number(path: Path, line: int, label: str) -> None:
    try:
        value = float(label.replace("_", "?"))  # Python reads 1_000
    except ValueError:
        hint = "for labels that are names, train classify"
        raise malformed(path, line, "a number", repr(label), hint) from None
    if not math.isfinite(value):
        raise malformed(path, line, "a finite number", repr(label), "leave the example out")


def find_columns(path: Path, header: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of the text's and the label's column; None if the line names neither and so is no header.

    A text's column is named text or sentence, a label's column label, class, rating or relation, in any case. A header
    that names one of them only, or one twice, is a DataError.
    """
    names = [field.strip().lower() for field in header]
    texts = [index for index, name in enumerate(names) if name in _TEXT_NAMES]
    labels = [index for index, name in enumerate(names) if name in _LABEL_NAMES]
    if not texts and not labels:
        return None
    if len(texts) != 1 or len(labels) != 1:
        hint = "or no header: the text first, then the label"
        raise malformed(path, 1, "one column named text and one named label", repr(", ".join(names)), hint)
    return texts[0], labels[0]


class Csv(LabelledFormat):
    """Comma-separated values as in RFC 4180: a quoted field may contain commas, quotes and line ends."""

    name = "csv"
    suffixes = (".csv",)
    description = (
        'text,label with quotes where needed: "fine, really",good; or a header with the columns text and label'
    )

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels; every record has as many columns as the header, or two without a header."""
        header: list[str] = []
        columns = (0, 1)
        for number, cells in read_csv_records(path):
            if number == 1 and (named := find_columns(path, cells)):
                header, columns = cells, named
                continue
            width = len(header) or 2
            if len(cells) != width:
                expected = f"{width} columns, as in the header" if header else "text,label"
                hint = "put a text or a label that contains commas in quotes"
                raise malformed(path, number, expected, repr(",".join(cells)), hint)
            yield number, cells[columns[0]], cells[columns[1]]


def read_csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each record of a table begins, and its fields.

    DataError if a quote is not closed or misplaced, or a field is longer than 131,072 characters.
    """
    reader = csv.reader((line + "\n" for line in iter_lines(path)), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "write a quote inside a quoted text twice"
            raise malformed(path, begin, "fields in closed quotes, or without quotes", str(error), hint) from None
        yield begin, fields


class Tsv(LabelledFormat):
    """Tab-separated values without quotes; without a header, the last tab separates the text from the label."""

    name = "tsv"
    suffixes = (".tsv", ".tab")
    description = "text<TAB>label, one a line; or a header with the columns text and label"

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels; every line has as many columns as the header, or a tab without a header."""
        header: list[str] = []
        columns: tuple[int, int] | None = None
        for number, line in enumerate(iter_lines(path), start=1):
            if number == 1 and (columns := find_columns(path, line.split("\t"))):
                header = line.split("\t")
                continue
            if columns:
                cells = line.split("\t")
                if len(cells) != len(header):
                    found = f"{len(cells)} in {line!r}"
                    raise malformed(path, number, f"{len(header)} columns", found, "as the header has")
                yield number, cells[columns[0]], cells[columns[1]]
            else:
                text, tab, label = line.rpartition("\t")
                if not tab:
                    raise malformed(path, number, "text<TAB>label", repr(line), "separate the two by a tab")
                yield number, text, label


class JsonLines(LabelledFormat):
    """One JSON object a line, with a text and a label; other keys are ignored."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")
    description = '{"text": "…", "label": "…"}, one object a line; a label may be a number'

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels; both must be text that UTF-8 can encode, or the label a finite number."""
        for number, record in read_json_objects(path):
            for key in ("text", "label"):
                if key not in record:
                    found = f"only {', '.join(map(json.dumps, record))}" if record else "none"
                    raise malformed(path, number, f'the key "{key}"', found, "an example has a text and a label")
            text, label = record["text"], record["label"]
            if not isinstance(text, str) or "\0" in text:
                raise malformed(path, number, 'a string for "text"', json.dumps(text), "in quotes, and without NUL")
            if not isinstance(label, str | int | float) or isinstance(label, bool):
                hint = "write a name in quotes, or a number"
                raise malformed(path, number, 'a string or a number for "label"', json.dumps(label), hint)
            if isinstance(label, float) and not math.isfinite(label):
                hint = "leave the example out, or write a name in quotes"
                raise malformed(path, number, "a finite number", json.dumps(label), hint)
            label = str(label)
            for value in (text, label):
                if surrogate := _find_surrogate(value):
                    hint = "write a character beyond U+FFFF as two surrogates, or as itself"
                    raise malformed(path, number, "whole characters", json.dumps(surrogate), hint)
            yield number, text, label


def read_json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object of a file of JSON lines with its line's number; DataError if a line is not one object."""
    for number, line in enumerate(iter_lines(path), start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # also brackets nested thousands deep, or a number of thousands of digits
            record = None
        if not isinstance(record, dict):
            hint = 'one a line, as {"text": "fine", "label": "good"}'
            raise malformed(path, number, "an object in JSON", repr(line), hint)
        yield number, record


def _find_surrogate(text: str) -> str:
    """Return a surrogate without its partner, which JSON can write and UTF-8 cannot; empty if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""
