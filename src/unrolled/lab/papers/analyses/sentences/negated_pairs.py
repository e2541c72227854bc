"""Short texts around a negator or an intensifier and the adjective behind it, written for this repository."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

__all__ = ["PlantedPair", "planted_pairs"]

_NEGATORS = ("not", "never", "hardly")
_INTENSIFIERS = ("very", "really", "truly")
_POSITIVE = ("good", "funny", "great", "clever", "charming", "touching")
_NEGATIVE = ("bad", "boring", "awful", "dull", "stupid", "predictable")
_FRAMES = (("the", "film", "is", "*", "."), ("it", "was", "*"), ("a", "*", "story", "about", "a", "family"))


@dataclass(frozen=True)
class PlantedPair:
    """A text with a pair of neighbours that are expected to interact."""

    words: tuple[str, ...]
    place: int
    """Of the first word of the pair."""
    negated: bool
    """Whether the first word is a negator; else it is an intensifier."""
    expected: int
    """Sign of the interaction if the pair is read as a unit: +1 in "not bad" and "very good", -1 in the others."""

    @property
    def pair(self) -> tuple[str, str]:
        """The two words."""
        first, second = self.words[self.place : self.place + 2]
        return first, second


def planted_pairs() -> list[PlantedPair]:
    """List all pairs in all frames; half of each kind of pair has a positive adjective."""
    found = []
    for first, adjective, frame in product((*_NEGATORS, *_INTENSIFIERS), (*_POSITIVE, *_NEGATIVE), _FRAMES):
        place = frame.index("*")
        words = (*frame[:place], first, adjective, *frame[place + 1 :])
        negated = first in _NEGATORS
        found.append(PlantedPair(words, place, negated, 1 if (adjective in _POSITIVE) is not negated else -1))
    return found
