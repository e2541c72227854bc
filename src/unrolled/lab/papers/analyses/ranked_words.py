"""Words in the order of a slope, and those of which an interval says what they do: turn, amplify, erase."""

from __future__ import annotations

from collections.abc import Iterable, Set
from statistics import median
from typing import NamedTuple, Self

__all__ = ["RankedWords", "Word"]


class Word(NamedTuple):
    """A word and the slope of what it does."""

    word: str
    times: int
    """How often it was met."""
    slope: float
    half: float
    """Half the width of the slope's interval."""


class RankedWords(NamedTuple):
    """The words of a text, and those whose whole interval is on one side of a bound, the strongest first."""

    words: tuple[Word, ...]
    """All, from the lowest slope to the highest."""
    turning: tuple[Word, ...]
    """Below 0."""
    amplifying: tuple[Word, ...]
    """Above 1, and above the median word."""
    erasing: tuple[Word, ...]
    """Nearer to 0 than half the median word."""

    @classmethod
    def of(cls, words: Iterable[Word]) -> Self:
        """Rank words.

        Args:
            words: in any order; one at least.

        Returns:
            The ranks.
        """
        ranked = tuple(sorted(words, key=lambda each: each.slope))
        usual = median(each.slope for each in ranked)
        near = (each for each in ranked if abs(each.slope) + each.half < abs(usual) / 2)
        return cls(
            ranked,
            tuple(each for each in ranked if each.slope + each.half < 0),
            tuple(each for each in reversed(ranked) if each.slope - each.half > max(1.0, usual)),
            tuple(sorted(near, key=lambda each: abs(each.slope) + each.half)),
        )

    def below(self, chosen: Set[str]) -> float | None:
        """Compute how often the slope of a chosen word is below another word's.

        Args:
            chosen: some words; those that were not met do not count.

        Returns:
            A share of pairs, 1/2 by chance; None where there is no pair.
        """
        met = below = 0
        for each in self.words:
            if each.word in chosen:
                met += 1
            else:
                below += met
        pairs = met * (len(self.words) - met)
        return below / pairs if pairs else None
