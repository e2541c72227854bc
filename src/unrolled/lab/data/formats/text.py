"""Plain text for language models, word by word or character by character; never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import END_OF_LINE, Characters, Corpus, Stream, Words
from unrolled.lab.data.formats.base import Files, Format
from unrolled.lab.data.text_files import iter_lines, malformed, without_compression
from unrolled.lab.data.tokenise import line_tokeniser

__all__ = ["Text", "character_lines", "cut_by_position", "word_lines"]

_SHARES = {2: (9, 1), 3: (8, 1, 1)}

Tokens = Callable[[Iterable[str]], Iterator[Sequence[str]]]


class Text(Format):
    """A file is one text, or a stretch of it.

    Dev and test, where they have no file, are the last tenths of the last training file: neighbouring lines are alike,
    so they are not drawn at random.
    """

    name = "text"
    suffixes = ()
    description = "plain text in any file; words end at spaces alone in .tokens and where the name says tok or bpe"
    kinds = (Words, Characters)

    def read(self, files: Files, kind: type[Corpus[Any]]) -> Corpus[Any]:
        """Find stretches for the splits; they are read as often as the streams are.

        Args:
            files: the training files and, where there are some, those of dev and test.
            kind: of words or of characters.

        Returns:
            The text; DataError when a file is empty, or too short to be cut.
        """
        *whole, last = files.train
        given = {"dev": files.dev, "test": files.test}
        for path in (*files.train, *files.dev, *files.test):
            _check(path)
        missing = [split for split, paths in given.items() if not paths]
        first, *rest = (
            cut_by_position(last, _SHARES[1 + len(missing)], _tokens(last, kind))
            if missing
            else (_stream([last], kind),)
        )
        splits = {"train": _chained([*map(partial(_stream, kind=kind), [[path] for path in whole]), first])}
        for split, paths in given.items():
            splits[split] = _stream(paths, kind) if paths else rest.pop(0)
        assert issubclass(kind, Words | Characters)
        return kind(name=files.name, **splits)

    def split(self, paths: Sequence[Path], kind: type[Corpus[Any]], known: Sequence[str]) -> Stream:
        """Read files one after the other as one text; see :meth:`Format.split`.

        Args:
            paths: one file or more.
            kind: of words or of characters.
            known: nothing: running text has no classes.

        Returns:
            The text.
        """
        for path in paths:
            _check(path)
        return _stream(paths, kind)


def _tokens(path: Path, kind: type[Corpus[Any]]) -> Tokens:
    return (
        character_lines
        if issubclass(kind, Characters)
        else partial(word_lines, cut=line_tokeniser(without_compression(path)))
    )


def _check(path: Path) -> None:
    """Refuse a file without text before an hour is spent on the others."""
    if not any(line.strip() for line in iter_lines(path)):
        raise malformed(path, 1, "text", "none in the whole file", "is it the right file?")


def _stream(paths: Sequence[Path], kind: type[Corpus[Any]]) -> Stream:
    return Stream(partial(_read, paths, kind))


def _read(paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Sequence[str]]:
    for path in paths:
        yield from _tokens(path, kind)(iter_lines(path))


def _chained(streams: Sequence[Stream]) -> Stream:
    return Stream(lambda: chain.from_iterable(streams))


def word_lines(lines: Iterable[str], cut: Callable[[str], Sequence[str]]) -> Iterator[Sequence[str]]:
    """Cut lines into words.

    Args:
        lines: without their ends.
        cut: gives a line's words.

    Yields:
        The words of each line and :data:`END_OF_LINE`, which an empty line has too.
    """
    for line in lines:
        yield [*cut(line), END_OF_LINE]


def character_lines(lines: Iterable[str]) -> Iterator[Sequence[str]]:
    r"""Cut lines into characters.

    Args:
        lines: without their ends.

    Yields:
        Each line with ``\n`` behind it; a string is the sequence of its characters.
    """
    for line in lines:
        yield line + "\n"


def cut_by_position(
    path: Path, shares: Sequence[int], tokens: Callable[[Iterable[str]], Iterator[Sequence[str]]]
) -> tuple[Stream, ...]:
    """Cut a file into stretches that follow one another, for a text without splits.

    Neighbouring lines are alike, so a stretch is kept whole. It is counted in characters; a line belongs to the
    stretch in which it begins. One pass over the file finds its length, and nothing of it is kept.

    Args:
        path: the file, plain or packed.
        shares: how long the stretches are beside each other: 8, 1, 1.
        tokens: makes tokens of lines; see :func:`words`, :func:`characters`.

    Returns:
        A stream for each stretch.

    Raises:
        DataError: when a stretch has no line.
    """
    length = sum(len(line) + 1 for line in iter_lines(path))
    cuts = [length * share // sum(shares) for share in accumulate(shares, initial=0)]
    for begin, end in pairwise(cuts):
        if next(_between(path, begin, end), None) is None:
            raise DataError(f"{path}: expected at least {len(shares)} lines, and none much longer than the others")
    return tuple(Stream(partial(_tokens_between, path, begin, end, tokens)) for begin, end in pairwise(cuts))


def _tokens_between(
    path: Path, begin: int, end: int, tokens: Callable[[Iterable[str]], Iterator[Sequence[str]]]
) -> Iterator[Sequence[str]]:
    return tokens(_between(path, begin, end))


def _between(path: Path, begin: int, end: int) -> Iterator[str]:
    """Read the lines that begin in a stretch."""
    place = 0
    for line in iter_lines(path):
        if place >= end:
            return
        if place >= begin:
            yield line
        place += len(line) + 1
