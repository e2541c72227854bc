"""Tagged sentences in columns: a token a line, its tag in a column, an empty line after each sentence.

In a CoNLL file the token is the first column and the tag the last one; the columns between them (parts of speech,
chunks) are ignored, and so are the lines ``-DOCSTART- …`` that begin a document. A CoNLL-U file has columns with names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Corpus, TaggedSentence, Tagging
from unrolled.lab.data.formats.base import RowFormat, ValidRow
from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.spans import Scheme, are_span_tags, convert_tags, detect_scheme, find_invalid_tag
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import split_at_spaces

__all__ = ["ColumnSentence", "Conll", "Conllu", "read_columns", "to_iobes"]

_DOCUMENT = "-DOCSTART-"
_SAMPLE = 10_000  # lines that tell whether tabs separate the columns


@dataclass(frozen=True, slots=True)
class ColumnSentence:
    """A sentence with its tags as they are written, and the line of its first token."""

    path: Path
    line: int
    tokens: tuple[str, ...]
    tags: tuple[str, ...]


def read_columns(path: Path, token: int = 0, tag: int = -1) -> Iterator[ColumnSentence | InvalidRow]:
    """Read a file of columns; every line has as many as the first.

    Tabs separate the columns where every line has one, so that a token may contain spaces; else spaces and tabs do.
    ``token`` and ``tag`` are the columns to read.
    """
    split = _split_at_tabs if _has_tabs(path) else _split_at_white_space
    width = 0
    for sentence in _blocks(enumerate(iter_lines(path), start=1), _DOCUMENT):
        rows = [split(line) for _, line in sentence]
        width = width or len(rows[0])
        if width < 2:
            hint = "a line is a token and its tag, an empty one ends a sentence"
            raise malformed(path, sentence[0][0], "a token and a tag", repr(sentence[0][1]), hint)
        for column in (token, tag):
            if column >= width:
                raise UsageError(
                    f"column {column + 1} is asked for, but {path} has {width} columns; expected 1 to {width}"
                )
        yield _sentence(path, sentence, rows, width, token, tag)


def _blocks(lines: Iterable[tuple[int, str]], skipped: str = "") -> Iterator[list[tuple[int, str]]]:
    """Yield the numbered lines between lines that are empty or begin with ``skipped``."""
    block: list[tuple[int, str]] = []
    for number, line in lines:
        if line and not line.isspace() and not (skipped and line.startswith(skipped)):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _has_tabs(path: Path) -> bool:
    lines = (line for line in iter_lines(path) if line.strip() and not line.startswith(_DOCUMENT))
    return all("\t" in line.strip() for line in islice(lines, _SAMPLE))


def _split_at_tabs(line: str) -> list[str]:
    return [cell.strip(" ") for cell in line.split("\t")]


def _split_at_white_space(line: str) -> list[str]:
    return split_at_spaces(line.replace("\t", " "))


def _sentence(
    path: Path,
    lines: Sequence[tuple[int, str]],
    rows: Sequence[Sequence[str]],
    width: int,
    token: int,
    tag: int,
    missing: str = "",
) -> ColumnSentence | InvalidRow:
    """Check the columns of a sentence; ``missing`` stands for a tag that is not there."""
    begin = lines[0][0]
    for (number, line), row in zip(lines, rows, strict=True):
        if len(row) != width:
            hint = "as the first line has; an empty line ends a sentence"
            error = malformed(path, number, f"{width} columns", f"{len(row)} in {line!r}", hint)
            return InvalidRow(path, begin, "with lines of other widths", error)
        for column, what in ((token, "token"), (tag, "tag")):
            if row[column] in ("", missing if what == "tag" else ""):
                error = malformed(path, number, f"a {what}", repr(line), "every line has both")
                return InvalidRow(path, begin, f"without a {what} on every line", error)
    return ColumnSentence(path, begin, tuple(row[token] for row in rows), tuple(row[tag] for row in rows))


def to_iobes(
    sentences: Sequence[ColumnSentence | InvalidRow], scheme: Scheme | None = None
) -> list[ValidRow[TaggedSentence] | InvalidRow]:
    """Convert tags that spell spans to IOBES; other tags stay.

    All sentences are in one scheme, which is detected if None. A sentence with a tag that is invalid in its place is an
    InvalidRow.
    """
    tags_of = [sentence.tags for sentence in sentences if isinstance(sentence, ColumnSentence)]
    if scheme is None and are_span_tags(tag for tags in tags_of for tag in tags):
        scheme = detect_scheme(tags_of)
    found: list[ValidRow[TaggedSentence] | InvalidRow] = []
    for sentence in sentences:
        if isinstance(sentence, InvalidRow):
            found.append(sentence)
            continue
        tags = sentence.tags
        if scheme is not None:
            if invalid := find_invalid_tag(tags, scheme):
                line = sentence.line + invalid.position
                error = malformed(sentence.path, line, invalid.expected, repr(tags[invalid.position]), invalid.hint)
                found.append(InvalidRow(sentence.path, sentence.line, "with a tag that is invalid in its place", error))
                continue
            tags = convert_tags(tags, scheme, "IOBES")
        found.append(ValidRow(sentence.path, sentence.line, TaggedSentence(sentence.tokens, tags)))
    return found


class _Columns(RowFormat[TaggedSentence]):
    """Tagged sentences of any file of columns."""

    kinds = (Tagging,)
    examples = "sentences"
    has_columns = True

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[ValidRow[TaggedSentence] | InvalidRow]:
        """Read each sentence."""
        yield from to_iobes([sentence for path in paths for sentence in self.sentences(path)])

    def sentences(self, path: Path) -> Iterator[ColumnSentence | InvalidRow]:
        """Read the sentences of a file with their tags as they are written."""
        raise NotImplementedError

    def labels(self, value: TaggedSentence, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Return a sentence's tags; only the types of span tags, because a type may occur in any length."""
        if are_span_tags(value.tags):
            return {tag[2:] for tag in value.tags if tag != "O"}
        return set(value.tags) - {"O"}

    def corpus(self, name: str, kind: type[Corpus[Any]], splits: Mapping[str, tuple[TaggedSentence, ...]]) -> Tagging:
        """Build the corpus; the training sentences tell whether the tags spell spans. DataError if all tags are one."""
        tags = {tag for sentence in splits["train"] for tag in sentence.tags}
        if len(tags) < 2:
            raise DataError(
                f"expected at least two tags, found {min(tags)!r} on every token; give the column of the tags with "
                "--label-column"
            )
        return Tagging(name=name, **splits, spans=are_span_tags(tags))


class Conll(_Columns):
    """Two columns or more. Tags that spell spans are BIO2, IOB1 or IOBES, detected for each split."""

    name = "conll"
    suffixes = (".conll", ".iob", ".bio")
    description = "a token and its tag on a line, an empty line between sentences; BIO2, IOB1, IOBES or plain tags"

    def sentences(self, path: Path) -> Iterator[ColumnSentence | InvalidRow]:
        """Read the first and the last column, or those whose numbers are given."""
        token = _number("--text-column", self.reading.text_column, 0)
        tag = _number("--label-column", self.reading.label_column, -1)
        if self.reading.text_column is None:
            _refuse_conllu(path)
        tokens, tags = set[str](), set[str]()
        for sentence in read_columns(path, token, tag):
            if isinstance(sentence, ColumnSentence):
                tokens.update(sentence.tokens)
                tags.update(sentence.tags)
            yield sentence
        said = (
            f"tokens from {_name(token)} ({len(tokens):,} different), tags from {_name(tag)} ({len(tags):,} different)"
        )
        swapped = "" if len(tags) <= len(tokens) else "; if that is the wrong way round: --text-column, --label-column"
        self.notes.append(f"{path}: {said}{swapped}")


def _refuse_conllu(path: Path) -> None:
    """Refuse a file whose first word stands behind its number, in the ten columns of CoNLL-U."""
    words = ((number, line) for number, line in enumerate(iter_lines(path), start=1) if line and line[0] != "#")
    number, first = next(words, (1, ""))
    cells = _split_at_tabs(first)
    if len(cells) == len(_CONLLU) and re.fullmatch(r"1(-\d+)?", cells[0]):
        hint = "pass --format conllu, or give its name the suffix .conllu"
        raise malformed(path, number, "a token and its tag", "the ten columns of CoNLL-U", hint)


def _name(column: int) -> str:
    return "the last column" if column < 0 else f"column {column + 1}"


def _number(flag: str, given: str | None, default: int) -> int:
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and 0 < int(given[:9]) == int(given)):
        raise UsageError(f"{flag} is {given!r}, but the columns of a CoNLL file have no names; give a number from 1")
    return int(given) - 1


_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_ORDINARY = re.compile(r"\d+")  # ids of multiword tokens are ranges (1-2), those of empty nodes have a point (1.1)


class Conllu(_Columns):
    """Universal Dependencies: columns with names, which a line ``# global.columns = …`` may change.

    Comments, the ranges of multiword tokens and empty nodes are left out: a sentence is its syntactic words.
    """

    name = "conllu"
    suffixes = (".conllu", ".conllup")
    description = "the ten columns of CoNLL-U; the tag is upos, or the column of --label-column: xpos, feats, deprel"

    def sentences(self, path: Path) -> Iterator[ColumnSentence | InvalidRow]:
        """Read a column of words and one of tags by their names."""
        names = _CONLLU
        numbered = enumerate(iter_lines(path), start=1)
        for block in _blocks(numbered):
            for _, line in block:
                if found := re.fullmatch(r"#\s*global\.columns\s*=\s*(.+)", line):
                    names = tuple(found[1].lower().split())
            lines = [(number, line) for number, line in block if not line.startswith("#")]
            rows = [_split_at_tabs(line) for _, line in lines]
            where = names.index("id") if "id" in names else None
            words = [
                (line, row)
                for line, row in zip(lines, rows, strict=True)
                if where is None or len(row) <= where or _ORDINARY.fullmatch(row[where])
            ]
            if words:
                token, tag = self._places(path, names)
                lines, rows = [line for line, _ in words], [row for _, row in words]
                yield _sentence(path, lines, rows, len(names), token, tag, missing="_")

    def _places(self, path: Path, names: Sequence[str]) -> tuple[int, int]:
        """Find the columns of words and tags."""
        places = []
        for given, default in ((self.reading.text_column, "form"), (self.reading.label_column, "upos")):
            name = (given or default).lower()
            if name not in names:
                raise UnknownNameError(f"column of {path}", name, names)
            places.append(names.index(name))
        return places[0], places[1]
