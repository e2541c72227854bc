"""Where in its code a model takes numbers out of torch, and whether they carry value there."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import CodeType

__all__ = ["CodePlace", "TakenPlaces", "place_of_call"]

CodePlace = tuple[CodeType, int]
"""A function and an instruction of it."""


class TakenPlaces:
    """The places where a held run gave Python numbers."""

    def __init__(self) -> None:
        self.valued: dict[CodePlace, str] = {}
        """Those where a number carried value, with the operation that gave it."""
        self._others: set[CodePlace] = set()
        self.count = 0
        """How often a number that carried value was given."""

    def note(self, name: str) -> None:
        """Note that an operation of this name gives numbers that carry value."""
        self.valued.setdefault(place_of_call(), name)
        self.count += 1

    def note_other(self) -> None:
        """Note that an operation gives numbers that carry none, such as those of a buffer."""
        self._others.add(place_of_call())

    def with_value_at(self, places: Collection[CodePlace]) -> TakenPlaces:
        """Return the same record, in which numbers carry value at these places alone."""
        found = TakenPlaces()
        found.valued = {place: name for place, name in self.valued.items() if place in places}
        found._others = (self._others | self.valued.keys()) - found.valued.keys()
        found.count = self.count
        return found

    def without_value(self, place: CodePlace) -> bool:
        """Tell whether the run took numbers at a place, of which none carried value."""
        return place in self._others and place not in self.valued


def place_of_call() -> CodePlace:
    """Return the innermost instruction that runs now and is neither torch's nor ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("torch", "unrolled"):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
