"""Sentences in columns: one token a line, its tag in the last column, an empty line behind each sentence.

The columns between the first and the last (parts of speech, chunks) are left aside, and so are the lines
``-DOCSTART- …`` that begin a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unrolled.lab.data.corpus import Tagged
from unrolled.lab.data.line_tokenisers import at_spaces
from unrolled.lab.data.spans import Scheme, convert, find_fault, is_spelled, recognise
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["InColumns", "read_columns", "to_iobes"]

_DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class InColumns:
    """A sentence, and where it stands."""

    path: Path
    line: int
    """Of its first token; the others follow."""
    tokens: tuple[str, ...]
    tags: tuple[str, ...]


def read_columns(path: Path) -> Iterator[InColumns]:
    """Read a file of columns, separated by spaces or tabs.

    Args:
        path: the file, plain or packed.

    Yields:
        Each sentence, its tags as they are written.

    Raises:
        DataError: when a line has not as many columns as the first, or that has one alone.
    """
    width = begin = 0
    rows: list[list[str]] = []
    for number, line in enumerate(iter_lines(path), start=1):
        row = at_spaces(line.replace("\t", " "))
        if not row or row[0] == _DOCUMENT:
            if rows:
                yield _sentence(path, begin, rows)
            rows = []
            continue
        width = width or len(row)
        if width < 2:
            hint = "a line is a token and its tag, an empty one ends a sentence"
            raise malformed(path, number, "a token and a tag", repr(line), hint)
        if len(row) != width:
            hint = "as the first line has; an empty line ends a sentence"
            raise malformed(path, number, f"{width} columns", f"{len(row)} in {line!r}", hint)
        if not rows:
            begin = number
        rows.append(row)
    if rows:
        yield _sentence(path, begin, rows)


def _sentence(path: Path, begin: int, rows: Sequence[Sequence[str]]) -> InColumns:
    return InColumns(path, begin, tuple(row[0] for row in rows), tuple(row[-1] for row in rows))


def to_iobes(sentences: Sequence[InColumns], scheme: Scheme | None = None) -> list[Tagged]:
    """Take tags that spell spans to IOBES; tags that stand for themselves stay.

    Args:
        sentences: all of them, written in one scheme.
        scheme: which; recognised (:func:`~unrolled.lab.data.spans.recognise`) when left out.

    Returns:
        The tagged sentences.

    Raises:
        DataError: when a tag cannot be where it is, with its file and line.
    """
    spelled = scheme is not None or is_spelled(tag for sentence in sentences for tag in sentence.tags)
    if spelled and scheme is None:
        scheme = recognise(sentence.tags for sentence in sentences)
    found = []
    for sentence in sentences:
        labels = sentence.tags
        if scheme is not None:
            fault = find_fault(labels, scheme)
            if fault:
                line = sentence.line + fault.position
                raise malformed(sentence.path, line, fault.expected, repr(labels[fault.position]), fault.hint)
            labels = convert(labels, scheme, "IOBES")
        found.append(Tagged(sentence.tokens, labels))
    return found
