"""Running text as streams of tokens, line by line, and cut into stretches where it comes without splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Stream
from unrolled.lab.data.text_files import iter_lines

__all__ = ["END_OF_LINE", "characters", "stretches", "words"]

END_OF_LINE = "<eos>"
"""The token that ends a line of words; a line of characters ends with a line's end."""


def words(lines: Iterable[str], cut: Callable[[str], Sequence[str]]) -> Iterator[Sequence[str]]:
    """Cut lines into words.

    Args:
        lines: without their ends.
        cut: gives a line's words.

    Yields:
        The words of each line and :data:`END_OF_LINE`, which an empty line has too.
    """
    for line in lines:
        yield [*cut(line), END_OF_LINE]


def characters(lines: Iterable[str]) -> Iterator[Sequence[str]]:
    r"""Cut lines into characters.

    Args:
        lines: without their ends.

    Yields:
        Each line with ``\n`` behind it; a string is the sequence of its characters.
    """
    for line in lines:
        yield line + "\n"


def stretches(
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
