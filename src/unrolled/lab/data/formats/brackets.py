"""Strings of well-nested brackets, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Brackets, Corpus
from unrolled.lab.data.formats.base import RowFormat, ValidRow
from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.text_files import malformed, numbered_lines

__all__ = ["BracketLines", "bracket_pairs"]

_PAIRS = ("()", "[]", "{}", "<>")
_OPENING = {pair[0]: pair for pair in _PAIRS}
_CLOSING = {pair[1]: pair for pair in _PAIRS}


def bracket_pairs(kinds: int) -> tuple[str, ...]:
    """Name k kinds of brackets: ``()``, ``[]``, ``{}``, ``<>``, then ``4``, ``5``, …, which no file can contain."""
    return (*_PAIRS, *map(str, range(len(_PAIRS), kinds)))[:kinds]


class BracketLines(RowFormat[str]):
    """Up to four kinds, always in this order: a file with ``[]`` only has two kinds, of which the first never occurs.

    The depth of the language is that of the deepest string of all splits.
    """

    name = "brackets"
    suffixes = ()
    description = "well-nested brackets, ([]){}<>, one string a line"
    kinds = (Brackets,)
    examples = "strings"

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[ValidRow[str] | InvalidRow]:
        """Read each string."""
        for path in paths:
            for number, line in numbered_lines(path):
                error = _check_nesting(path, number, line)
                yield InvalidRow(path, number, "not well nested", error) if error else ValidRow(path, number, line)

    def labels(self, value: str, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Return the kinds of brackets in a string."""
        return {_OPENING[bracket] for bracket in value if bracket in _OPENING}

    def corpus(self, name: str, kind: type[Corpus[Any]], splits: Mapping[str, tuple[str, ...]]) -> Brackets:
        """Build the corpus of the language that contains all strings."""
        strings = list(chain.from_iterable(splits.values()))
        occurring = {pair for string in strings for pair in self.labels(string, kind)}
        known = bracket_pairs(1 + max(map(_PAIRS.index, occurring)))
        if len(occurring) == 1:  # also one that is not the first
            self.notes.append("all brackets are of one kind: the only closing bracket is always the right one")
        numbers = {pair: number for number, pair in enumerate(known)}
        numbered = {key: tuple(self.example(each, kind, numbers) for each in split) for key, split in splits.items()}
        return Brackets(name=name, **numbered, kinds=len(known), depth=max(map(_depth, strings)))

    def example(self, value: str, kind: type[Corpus[Any]], known: Mapping[str, int]) -> tuple[int, ...]:
        """Number the brackets of a string: 0 … k-1 open, k … 2k-1 close the same kind."""
        return tuple(
            known[_OPENING[bracket]] if bracket in _OPENING else len(known) + known[_CLOSING[bracket]]
            for bracket in value
        )


def _check_nesting(path: Path, line: int, string: str) -> DataError | None:
    """Return an error about the first bracket that is not well nested."""
    opened: list[str] = []
    for place, bracket in enumerate(string, start=1):
        if bracket in _OPENING:
            opened.append(_OPENING[bracket])
        elif bracket not in _CLOSING:
            expected, hint = f"brackets of {' '.join(_PAIRS)} only", "a line is one string, without spaces"
            return malformed(path, line, expected, f"{bracket!r} at {place}", hint)
        elif not opened or opened[-1] != _CLOSING[bracket]:
            expected = f"{opened[-1][1]!r}, or an opening bracket" if opened else "an opening bracket"
            return malformed(path, line, expected, f"{bracket!r} at {place}", "the last open bracket is closed first")
        else:
            opened.pop()
    if opened:
        return malformed(path, line, f"{opened[-1][1]!r}", "the line's end", "close every bracket")
    if not string:
        return malformed(path, line, "a string of brackets", "an empty line", "remove the line")
    return None


def _depth(string: str) -> int:
    return max(accumulate(1 if bracket in _OPENING else -1 for bracket in string))
