"""Parallel text: two files, line i of one the translation of line i of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from unrolled.lab.data.corpus import Pair
from unrolled.lab.data.text_files import iter_lines, malformed

__all__ = ["read_parallel"]

Cut = Callable[[str], Sequence[str]]


def read_parallel(source: Path, target: Path, cut_source: Cut, cut_target: Cut) -> Iterator[tuple[int, Pair]]:
    """Read two files side by side.

    Args:
        source: the file of the language that is translated, plain or packed.
        target: the file of the other.
        cut_source: cuts a line of the one into tokens.
        cut_target: cuts a line of the other.

    Yields:
        Each pair, with its line's number.

    Raises:
        DataError: when a line is empty, or one file has fewer lines than the other.
    """
    for number, lines in enumerate(zip_longest(iter_lines(source), iter_lines(target)), start=1):
        tokens = []
        for path, line, other, cut in zip(
            (source, target), lines, (target, source), (cut_source, cut_target), strict=True
        ):
            if line is None:
                hint = f"{other} has more lines; line i of one file is the translation of line i of the other"
                raise malformed(path, number, "a sentence", "the file's end", hint)
            tokens.append(tuple(cut(line)))
            if not tokens[-1]:
                raise malformed(path, number, "a sentence", "an empty line", f"leave the line out here and in {other}")
        yield number, Pair(*tokens)
