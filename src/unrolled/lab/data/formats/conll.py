"""Tagged sentences in columns: a token a line, its tag in the last column, an empty line between sentences."""

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


class Conll(RowFormat[TaggedSentence]):
    """Two columns or more, separated by spaces or tabs; the first and the last are read.

    Tags that spell spans are BIO2, IOB1 or IOBES, recognised for each split, and become IOBES; others, such as parts of
    speech, stay as they are.
    """

    name = "conll"
    suffixes = (".conll", ".iob", ".bio")
    description = "a token and its tag on a line, an empty line between sentences; BIO2, IOB1, IOBES or plain tags"
    kinds = (Tagging,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[TaggedSentence]]:  # one kind
        """Read the sentences of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: of tagged sentences.

        Yields:
            Each sentence.
        """
        found = [sentence for path in paths for sentence in read_columns(path)]
        for sentence, tagged in zip(found, to_iobes(found), strict=True):
            yield Row(sentence.path, sentence.line, tagged)

    def labels(self, value: TaggedSentence, kind: type[Corpus[Any]]) -> Iterable[str]:  # one kind
        """Give a sentence's tags; of those that spell spans the types, since a type met once may be met in any length.

        Args:
            value: the sentence.
            kind: of tagged sentences.

        Returns:
            What must be trained on to be predicted.
        """
        return {tag[2:] for tag in value.tags if tag != "O"} if are_span_tags(value.tags) else set(value.tags) - {"O"}

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],  # one kind
        train: Sequence[TaggedSentence],
        dev: Sequence[TaggedSentence],
        test: Sequence[TaggedSentence],
    ) -> Tagging:
        """Make the corpus.

        Args:
            name: what it is called.
            kind: of tagged sentences.
            train: its sentences.
            dev: its sentences.
            test: its sentences.

        Returns:
            The corpus; whether tags spell spans is seen from the training sentences.
        """
        spelled = are_span_tags(tag for sentence in train for tag in sentence.tags)
        return Tagging(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test), spans=spelled)


_DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class ColumnSentence:
    """A sentence, and where it stands."""

    path: Path
    line: int
    """Of its first token; the others follow."""
    tokens: tuple[str, ...]
    tags: tuple[str, ...]


def read_columns(path: Path) -> Iterator[ColumnSentence]:
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
    """Take tags that spell spans to IOBES; tags that stand for themselves stay.

    Args:
        sentences: all of them, written in one scheme.
        scheme: which; recognised (:func:`~unrolled.lab.data.spans.detect_scheme`) when left out.

    Returns:
        The tagged sentences.

    Raises:
        DataError: when a tag cannot be where it is, with its file and line.
    """
    spelled = scheme is not None or are_span_tags(tag for sentence in sentences for tag in sentence.tags)
    if spelled and scheme is None:
        scheme = detect_scheme(sentence.tags for sentence in sentences)
    found = []
    for sentence in sentences:
        labels = sentence.tags
        if scheme is not None:
            fault = find_invalid_tag(labels, scheme)
            if fault:
                line = sentence.line + fault.position
                raise malformed(sentence.path, line, fault.expected, repr(labels[fault.position]), fault.hint)
            labels = convert_tags(labels, scheme, "IOBES")
        found.append(TaggedSentence(sentence.tokens, labels))
    return found
