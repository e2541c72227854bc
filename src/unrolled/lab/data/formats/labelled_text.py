"""Texts with a label each, as tables write them; what the label is depends on the kind of corpus."""

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

_TEXTS = frozenset({"text", "sentence"})
_LABELS = frozenset({"label", "class", "rating", "relation"})

Labelled = tuple[tuple[str, ...], str]


def find_columns(path: Path, header: Sequence[str]) -> tuple[int, int] | None:
    """Find the two columns in what may be a table's header.

    A text's column is called text or sentence, a label's label, class, rating or relation, in any case.

    Args:
        path: the file, for errors.
        header: the fields of its first line.

    Returns:
        The indices of the text's and the label's column; None when the line names neither and so is no header.

    Raises:
        DataError: when it names one of them and not the other, or one twice.
    """
    names = [field.strip().lower() for field in header]
    texts = [index for index, name in enumerate(names) if name in _TEXTS]
    labels = [index for index, name in enumerate(names) if name in _LABELS]
    if not texts and not labels:
        return None
    if len(texts) != 1 or len(labels) != 1:
        hint = "or no header: the text first, then the label"
        raise malformed(path, 1, "one column named text and one named label", repr(", ".join(names)), hint)
    return texts[0], labels[0]


class LabelledFormat(RowFormat[tuple[tuple[str, ...], str]]):
    """A format whose examples are a text and a label.

    The label is a class for classification, the name of a relation for texts in which two entities are marked, a
    number for regression.
    """

    kinds = (Classification, Regression, Relations)

    @abstractmethod
    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line an example begins at, its text, its label.
        """

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Labelled]]:
        """Read the examples of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: one of ``kinds``.

        Yields:
            Each text in tokens, with its label.

        Raises:
            DataError: when a text or a label is missing, or not of that kind.
        """
        for path in paths:
            for line, text, label in self.fields(path):
                label = label.strip()
                if not text.strip():
                    raise malformed(path, line, "a text", f"the label {label!r} alone", "every label needs a text")
                if not label:
                    raise malformed(path, line, "a label", f"the text {text!r} alone", "every text needs a label")
                if issubclass(kind, Regression):
                    _number(path, line, label)
                yield Row(path, line, (_tokens(path, line, text, kind), label))

    def labels(self, value: Labelled, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Give an example's class; a number needs not to have been seen before.

        Args:
            value: the example.
            kind: one of ``kinds``.

        Returns:
            The class, or nothing.
        """
        return () if issubclass(kind, Regression) else (value[1],)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],
        train: Sequence[Labelled],
        dev: Sequence[Labelled],
        test: Sequence[Labelled],
    ) -> Corpus[Any]:
        """Make the corpus; classes are in alphabetical order.

        Args:
            name: what it is called.
            kind: its class.
            train: its examples.
            dev: its examples.
            test: its examples.

        Returns:
            The corpus.

        Raises:
            DataError: when there is one class only.
        """
        classes = () if issubclass(kind, Regression) else tuple(sorted({label for _, label in train}))
        splits = {
            key: tuple(self.example(value, kind, classes) for value in split)
            for key, split in {"train": train, "dev": dev, "test": test}.items()
        }
        if not issubclass(kind, Classification):
            return Regression(name=name, **splits)
        if len(classes) < 2:
            raise DataError(
                f"expected at least two labels, found {classes[0]!r} on every example; is it the last column?"
            )
        return kind(name=name, labels=classes, **splits)

    def example(self, value: Labelled, kind: type[Corpus[Any]], known: Sequence[str]) -> Any:
        """Make a rated text, or one whose class is counted as in ``known``.

        Args:
            value: tokens and label.
            kind: one of ``kinds``.
            known: the classes, in their order.

        Returns:
            The example.
        """
        tokens, label = value
        return RatedText(tokens, float(label)) if issubclass(kind, Regression) else Example(tokens, known.index(label))


def _tokens(path: Path, line: int, text: str, kind: type[Corpus[Any]]) -> tuple[str, ...]:
    if not issubclass(kind, Relations):
        return tuple(tokenise(text))
    try:
        return tokenise_marked(text)
    except DataError as error:
        raise DataError(f"{path}:{line}: {error}; mark the two entities that the relation is between") from None


def _number(path: Path, line: int, label: str) -> None:
    """Check that a label is a number that can be learned."""
    try:
        value = float(label.replace("_", "?"))  # Python reads 1_000
    except ValueError:
        hint = "for labels that are names, train classify"
        raise malformed(path, line, "a number", repr(label), hint) from None
    if not math.isfinite(value):
        raise malformed(path, line, "a finite number", repr(label), "leave the example out")


def read_csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the records of a table; a quoted field may have commas, line ends, and quotes written twice.

    Args:
        path: the file, plain or packed.

    Yields:
        Each record's fields, with the line that it begins at.

    Raises:
        DataError: when a quote is not closed, stands where none may, or a field is longer than 131,072 characters.
    """
    reader = csv.reader((line + "\n" for line in iter_lines(path)), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "a quote inside a quoted text is written twice"
            raise malformed(path, begin, "fields in closed quotes, or without quotes", str(error), hint) from None
        yield begin, fields


def read_json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
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


class Csv(LabelledFormat):
    """Comma-separated values as RFC 4180 describes them; a quoted field may have commas, quotes and line ends.

    A header may name the columns; without one there are two, the text and the label.
    """

    name = "csv"
    suffixes = (".csv",)
    description = (
        'text,label with quotes where needed: "fine, really",good; or a header with the columns text and label'
    )

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line an example begins at, the text, the label.

        Raises:
            DataError: when a line has not as many columns as the header, or, without one, not two.
        """
        header: list[str] = []
        where = (0, 1)
        for number, cells in read_csv_records(path):
            if number == 1 and (named := find_columns(path, cells)):
                header, where = cells, named
                continue
            width = len(header) or 2
            if len(cells) != width:
                expected = f"{width} columns, as in the header" if header else "text,label"
                hint = "a text, or a label, with commas stands in quotes"
                raise malformed(path, number, expected, repr(",".join(cells)), hint)
            yield number, cells[where[0]], cells[where[1]]


class Tsv(LabelledFormat):
    """One example a line, without quotes; a header may name the columns.

    Without a header a line is cut at its last tab, so that a text may have tabs itself.
    """

    name = "tsv"
    suffixes = (".tsv", ".tab")
    description = "text<TAB>label, one a line; or a header with the columns text and label"

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line, the text, the label.

        Raises:
            DataError: when a line has no tab, or not as many as the header.
        """
        header: list[str] = []
        where: tuple[int, int] | None = None
        for number, line in enumerate(iter_lines(path), start=1):
            if number == 1 and (where := find_columns(path, line.split("\t"))):
                header = line.split("\t")
                continue
            if where:
                cells = line.split("\t")
                if len(cells) != len(header):
                    found = f"{len(cells)} in {line!r}"
                    raise malformed(path, number, f"{len(header)} columns", found, "as the header has")
                yield number, cells[where[0]], cells[where[1]]
            else:
                text, tab, label = line.rpartition("\t")
                if not tab:
                    raise malformed(path, number, "text<TAB>label", repr(line), "the two are separated by a tab")
                yield number, text, label


class JsonLines(LabelledFormat):
    """One object a line, with a text and a label; what else it holds is left aside."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")
    description = '{"text": "…", "label": "…"}, one object a line; a label may be a number'

    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line, the text, the label.

        Raises:
            DataError: when a line is no object, has no text or no label, or one that cannot be written in UTF-8.
        """
        for number, record in read_json_objects(path):
            for key in ("text", "label"):
                if key not in record:
                    found = f"only {', '.join(map(json.dumps, record))}" if record else "none"
                    raise malformed(path, number, f'the key "{key}"', found, "an example has a text and a label")
            text, label = record["text"], record["label"]
            if not isinstance(text, str) or "\0" in text:
                raise malformed(path, number, 'a string for "text"', json.dumps(text), "in quotes, and without NUL")
            if not isinstance(label, str | int | float) or isinstance(label, bool):
                hint = "a name in quotes, or a number"
                raise malformed(path, number, 'a string or a number for "label"', json.dumps(label), hint)
            if isinstance(label, float) and not math.isfinite(label):
                hint = "leave the example out, or put a name in quotes"
                raise malformed(path, number, "a finite number", json.dumps(label), hint)
            label = str(label)
            for value in (text, label):
                if half := _half_a_character(value):
                    hint = "a character beyond U+FFFF is written as two of them, or as itself"
                    raise malformed(path, number, "whole characters", json.dumps(half), hint)
            yield number, text, label


def _half_a_character(text: str) -> str:
    """Find what JSON can write and UTF-8 cannot: one of a pair of surrogates; nothing where there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""
