"""Strings of brackets, well nested, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from unrolled.lab.data.corpus import Brackets, Corpus
from unrolled.lab.data.formats.base import Row, RowFormat
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["BracketLines", "bracket_pairs"]

_PAIRS = ("()", "[]", "{}", "<>")
_OPENING = {pair[0]: pair for pair in _PAIRS}
_CLOSING = {pair[1]: pair for pair in _PAIRS}


def bracket_pairs(kinds: int) -> tuple[str, ...]:
    """Name the first kinds of brackets as files write them.

    Args:
        kinds: how many.

    Returns:
        ``()``, ``[]``, ``{}``, ``<>``; those beyond, which no file can write, by their numbers.
    """
    return (*_PAIRS, *map(str, range(len(_PAIRS), kinds)))[:kinds]


class BracketLines(RowFormat[str]):
    """Up to four kinds, always in the same order: a file of ``[]`` alone has two, of which the first never occurs.

    The language's depth is that of its deepest string, whichever split has it.
    """

    name = "brackets"
    suffixes = ()
    description = "well-nested brackets, ([]){}<>, one string a line"
    kinds = (Brackets,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[str]]:  # one kind
        """Read the strings of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: of brackets.

        Yields:
            Each string.

        Raises:
            DataError: when a line holds anything else, or is not well nested.
        """
        for path in paths:
            for number, line in enumerate(iter_lines(path), start=1):
                _check(path, number, line)
                yield Row(path, number, line)

    def labels(self, value: str, kind: type[Corpus[Any]]) -> Iterable[str]:  # one kind
        """Give the kinds that a string has: one never trained on cannot be predicted.

        Args:
            value: the string.
            kind: of brackets.

        Returns:
            What must be trained on.
        """
        return {_OPENING[bracket] for bracket in value if bracket in _OPENING}

    def corpus(
        self, name: str, kind: type[Corpus[Any]], train: Sequence[str], dev: Sequence[str], test: Sequence[str]
    ) -> Brackets:
        """Make the corpus.

        Args:
            name: what it is called.
            kind: of brackets.
            train: its strings.
            dev: its strings.
            test: its strings.

        Returns:
            The corpus.
        """
        strings = (*train, *dev, *test)
        known = bracket_pairs(max(1 + _PAIRS.index(pair) for string in strings for pair in self.labels(string, kind)))
        splits = {
            key: tuple(self.example(string, kind, known) for string in split)
            for key, split in {"train": train, "dev": dev, "test": test}.items()
        }
        return Brackets(name=name, **splits, kinds=len(known), depth=max(map(_depth, strings)))

    def example(self, value: str, kind: type[Corpus[Any]], known: Sequence[str]) -> tuple[int, ...]:
        """Number the brackets of a string: 0 … k-1 open, k … 2k-1 close the same kind.

        Args:
            value: the string.
            kind: of brackets.
            known: the k kinds.

        Returns:
            The numbers.
        """
        return tuple(
            known.index(_OPENING[bracket]) if bracket in _OPENING else len(known) + known.index(_CLOSING[bracket])
            for bracket in value
        )


def _check(path: Path, line: int, string: str) -> None:
    """Refuse a string that is not well nested, at its first bracket that cannot stand there."""
    opened: list[str] = []
    for place, bracket in enumerate(string, start=1):
        if bracket in _OPENING:
            opened.append(_OPENING[bracket])
        elif bracket not in _CLOSING:
            expected, hint = f"brackets of {' '.join(_PAIRS)} alone", "a line is one string, without spaces"
            raise malformed(path, line, expected, f"{bracket!r} at {place}", hint)
        elif not opened or opened[-1] != _CLOSING[bracket]:
            expected = f"{opened[-1][1]!r}, or a bracket that opens" if opened else "a bracket that opens"
            raise malformed(path, line, expected, f"{bracket!r} at {place}", "what was opened last is closed first")
        else:
            opened.pop()
    if opened:
        raise malformed(path, line, f"{opened[-1][1]!r}", "the line's end", "every bracket that opens is closed")
    if not string:
        raise malformed(path, line, "a string of brackets", "an empty line", "leave the line out")


def _depth(string: str) -> int:
    """How many brackets are open at once, at most."""
    return max(accumulate(1 if bracket in _OPENING else -1 for bracket in string))
