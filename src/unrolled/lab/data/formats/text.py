"""Plain text for language models, as words or characters; memory never holds the whole text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import END_OF_LINE, Characters, Corpus, Stream, Words
from unrolled.lab.data.formats.base import Files, Format
from unrolled.lab.data.text_files import iter_lines, malformed, without_compression
from unrolled.lab.data.tokenise import line_tokeniser, split_at_spaces
from unrolled.lab.data.vocabulary import UNKNOWN_WORD

__all__ = ["Text", "character_lines", "cut_by_position", "word_lines"]

_SHARES = {2: (9, 1), 3: (8, 1, 1)}
_SAMPLE = 1000  # lines that tell whether a text is tokenised

LineTokens = Callable[[Iterable[str]], Iterator[Sequence[str]]]


def word_lines(lines: Iterable[str], split: Callable[[str], Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield the words of each line and :data:`END_OF_LINE`, also for an empty line."""
    for line in lines:
        yield [*split(line), END_OF_LINE]


def character_lines(lines: Iterable[str]) -> Iterator[Sequence[str]]:
    r"""Yield each line with ``\n`` at its end; a string is the sequence of its characters."""
    for line in lines:
        yield line + "\n"


def cut_by_position(path: Path, shares: Sequence[int], tokens: LineTokens) -> tuple[Stream, ...]:
    """Cut a file without splits into consecutive parts, because neighbouring lines are alike.

    Args:
        path: The file, plain or compressed.
        shares: The relative lengths of the parts in characters, as 8, 1, 1. A line belongs to the part in which it
            begins.
        tokens: Makes tokens of lines: :func:`word_lines` or :func:`character_lines`.

    Raises:
        DataError: If a part has no line.
    """
    length = sum(len(line) + 1 for line in iter_lines(path))
    cuts = list(pairwise(length * share // sum(shares) for share in accumulate(shares, initial=0)))
    for begin, end in cuts:
        if next(_lines_between(path, begin, end), None) is None:
            raise DataError(
                f"{path}: expected at least {len(shares)} lines, and none much longer than the others; break the text "
                "into lines, or name files for dev and test with --dev and --test"
            )
    return tuple(Stream(partial(_tokens_between, path, begin, end, tokens)) for begin, end in cuts)


def _tokens_between(path: Path, begin: int, end: int, tokens: LineTokens) -> Iterator[Sequence[str]]:
    return tokens(_lines_between(path, begin, end))


def _lines_between(path: Path, begin: int, end: int) -> Iterator[str]:
    """Read the lines that begin at a character in ``[begin, end)``."""
    place = 0
    for line in iter_lines(path):
        if place >= end:
            return
        if place >= begin:
            yield line
        place += len(line) + 1


class Text(Format):
    """Running text. Dev and test are the last tenths of the last training file if they have no files."""

    name = "text"
    suffixes = ()
    description = "plain text in any file; it is split at spaces only if the name contains tok, tokens or bpe"
    kinds = (Words, Characters)

    def read(self, files: Files, kind: type[Corpus[Any]]) -> Corpus[Any]:
        """Build the streams of the splits; DataError if a file is empty, or too short to be cut."""
        *whole, last = files.train
        given = {"dev": files.dev, "test": files.test}
        for path in (*files.train, *files.dev, *files.test):
            self._check(path, kind)
        missing = [split for split, paths in given.items() if not paths]
        parts = [_stream([last], kind)]
        if missing:
            parts = list(cut_by_position(last, _SHARES[1 + len(missing)], _tokens(last, kind)))
        splits: dict[str, Any] = {"train": _chain([*(_stream([path], kind) for path in whole), parts.pop(0)])}
        for split, paths in given.items():
            splits[split] = _stream(paths, kind) if paths else parts.pop(0)
        assert issubclass(kind, Words | Characters)
        return kind(name=files.name, **splits, notes=tuple(self.notes))

    def split(self, paths: Sequence[Path], kind: type[Corpus[Any]], known: Sequence[str]) -> Stream:
        """Read the files one after the other as one text."""
        for path in paths:
            self._check(path, kind)
        return _stream(paths, kind)

    def _check(self, path: Path, kind: type[Corpus[Any]]) -> None:
        """Refuse a file without text before the other files are read; note one that seems to be tokenised already."""
        if not any(line.strip() for line in iter_lines(path)):
            raise malformed(path, 1, "text", "none in the whole file", "name a file that contains text")
        if issubclass(kind, Characters) or line_tokeniser(without_compression(path)) is split_at_spaces:
            return
        if any(UNKNOWN_WORD in line for line in islice(iter_lines(path), _SAMPLE)):
            self.notes.append(
                f"{path}: contains {UNKNOWN_WORD}, as tokenised text does, but is split as plain text; to split it at "
                "spaces only, put tok into its name: text.tok.txt"
            )


def _tokens(path: Path, kind: type[Corpus[Any]]) -> LineTokens:
    if issubclass(kind, Characters):
        return character_lines
    return partial(word_lines, split=line_tokeniser(without_compression(path)))


def _stream(paths: Sequence[Path], kind: type[Corpus[Any]]) -> Stream:
    return Stream(lambda: chain.from_iterable(_tokens(path, kind)(iter_lines(path)) for path in paths))


def _chain(streams: Sequence[Stream]) -> Stream:
    return Stream(lambda: chain.from_iterable(streams))
