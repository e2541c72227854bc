"""Strings of brackets in numbers, with what there is to predict in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import Batch, EncodedSequences

__all__ = ["IGNORE_INDEX", "BracketBatch", "EncodedBrackets", "closing_targets"]

IGNORE_INDEX = -100
"""Where there is nothing to predict: what ``torch.nn.functional.cross_entropy`` leaves out."""


def closing_targets(string: Sequence[int], kinds: int, depth: int) -> tuple[list[int], list[int]]:
    """Find what closes next, after each bracket of a string.

    Args:
        string: 0 … k-1 open, k … 2k-1 close the same kind.
        kinds: k.
        depth: m, the most that may be open.

    Returns:
        For each bracket the kind that the next one closes, :data:`IGNORE_INDEX` where that opens or there is none; and
        how many brackets further on it stands than the one it closes, 0 where there is none.

    Raises:
        DataError: when it is no string of these brackets; the text says what was expected and found, but not where.

    Example:
        >>> closings([0, 1, 3, 2], kinds=2, depth=4)
        ([-100, 1, 0, -100], [0, 1, 3, 0])
    """
    kind, distance = [IGNORE_INDEX] * len(string), [0] * len(string)
    opened: list[int] = []
    for place, bracket in enumerate(string):
        if not 0 <= bracket < 2 * kinds:
            raise DataError(f"bracket {place + 1} is {bracket}; expected 0 to {2 * kinds - 1}")
        if bracket < kinds:
            opened.append(place)
            if len(opened) > depth:
                raise DataError(f"bracket {place + 1} opens level {depth + 1}; expected at most {depth}")
            continue
        if not opened or string[opened[-1]] != bracket - kinds:
            before = f"kind {string[opened[-1]]} was opened last" if opened else "nothing is open"
            raise DataError(f"bracket {place + 1} closes kind {bracket - kinds} where {before}")
        kind[place - 1] = bracket - kinds
        distance[place - 1] = place - opened.pop()
    if opened:
        raise DataError(f"bracket {opened[-1] + 1} is never closed; expected all to be")
    return kind, distance


@dataclass(frozen=True)
class BracketBatch(Batch):
    """Some strings, side by side."""

    brackets: Tensor
    """Shape (batch, time), int64; 0 behind a string's end."""
    closing: Tensor
    """The kind that the next bracket closes, :data:`IGNORE_INDEX` where it closes none, shape (batch, time), int64."""
    distances: Tensor
    """From the bracket that it closes to it, 0 where there is none, shape (batch, time), int64."""
    lengths: Tensor
    """How many brackets each string has, shape (batch,), int64."""


@dataclass(frozen=True)
class EncodedBrackets(EncodedSequences):
    """A corpus of strings of brackets."""

    @classmethod
    def encode(cls, strings: Sequence[Sequence[int]], kinds: int, depth: int) -> EncodedBrackets:
        """Find all that is to be predicted.

        Args:
            strings: of brackets.
            kinds: k.
            depth: m.

        Returns:
            The strings in numbers.

        Raises:
            DataError: when there is none, or one is empty or not well-formed.
        """
        rows = []
        for number, string in enumerate(strings, 1):
            try:
                rows.append((string, *closing_targets(string, kinds, depth)))
            except DataError as error:
                raise DataError(f"string {number}: {error}") from None
        return cls.from_rows(rows)

    def select(self, which: Tensor) -> BracketBatch:
        """Lay some strings side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest string.
        """
        (brackets, closing, distances), lengths = self.gather(which, (0, IGNORE_INDEX, 0))
        return BracketBatch(brackets, closing, distances, lengths)
