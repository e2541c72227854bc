"""Tagged sentences in columns: a token a line, its tag in the last column, an empty line after each sentence.

The columns between the first and the last (parts of speech, chunks) are ignored, and so are the lines
``-DOCSTART- …`` that begin a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.lab.data.corpus import Corpus, TaggedSentence, Tagging
from unrolled.lab.data.formats.base import Row, RowFormat
from unrolled.lab.data.spans import Scheme, are_span_tags, convert_tags, detect_scheme, find_invalid_tag
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import split_at_spaces

__all__ = ["ColumnSentence", "Conll", "read_columns", "to_iobes"]

_DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class ColumnSentence:
    """A sentence with its tags as they are written, and the line of its first token."""

    path: Path
    line: int
    tokens: tuple[str, ...]
    tags: tuple[str, ...]


def read_columns(path: Path) -> Iterator[ColumnSentence]:
    """Read a file of columns separated by spaces or tabs; DataError unless every line has as many as the first."""
    width = begin = 0
    rows: list[list[str]] = []
    for number, line in enumerate(iter_lines(path), start=1):
        row = split_at_spaces(line.replace("\t", " "))
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


def _sentence(path: Path, begin: int, rows: Sequence[Sequence[str]]) -> ColumnSentence:
    return ColumnSentence(path, begin, tuple(row[0] for row in rows), tuple(row[-1] for row in rows))


def to_iobes(sentences: Sequence[ColumnSentence], scheme: Scheme | None = None) -> list[TaggedSentence]:
    """Convert tags that spell spans to IOBES; other tags stay.

    All sentences are in one scheme, which is detected if None. DataError, with file and line, if a tag is invalid.
    """
    if scheme is None and are_span_tags(tag for sentence in sentences for tag in sentence.tags):
        scheme = detect_scheme(sentence.tags for sentence in sentences)
    found = []
    for sentence in sentences:
        tags = sentence.tags
        if scheme is not None:
            if invalid := find_invalid_tag(tags, scheme):
                line = sentence.line + invalid.position
                raise malformed(sentence.path, line, invalid.expected, repr(tags[invalid.position]), invalid.hint)
            tags = convert_tags(tags, scheme, "IOBES")
        found.append(TaggedSentence(sentence.tokens, tags))
    return found


class Conll(RowFormat[TaggedSentence]):
    """Two columns or more. Tags that spell spans are BIO2, IOB1 or IOBES, detected for each split."""

    name = "conll"
    suffixes = (".conll", ".iob", ".bio")
    description = "a token and its tag on a line, an empty line between sentences; BIO2, IOB1, IOBES or plain tags"
    kinds = (Tagging,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[TaggedSentence]]:
        """Read each sentence."""
        found = [sentence for path in paths for sentence in read_columns(path)]
        for sentence, tagged in zip(found, to_iobes(found), strict=True):
            yield Row(sentence.path, sentence.line, tagged)

    def labels(self, value: TaggedSentence, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Return a sentence's tags; only the types of span tags, because a type may occur in any length."""
        if are_span_tags(value.tags):
            return {tag[2:] for tag in value.tags if tag != "O"}
        return set(value.tags) - {"O"}

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],
        train: Sequence[TaggedSentence],
        dev: Sequence[TaggedSentence],
        test: Sequence[TaggedSentence],
    ) -> Tagging:
        """Build the corpus; the training sentences tell whether the tags spell spans."""
        spans = are_span_tags(tag for sentence in train for tag in sentence.tags)
        return Tagging(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test), spans=spans)
