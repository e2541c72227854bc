"""Outputs that read a model by held results only: a softmax at its end, an exponential of a distance."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from unrolled.errors import UnrolledError, UnsupportedOperationError
from unrolled.held_forward.mode import FOLLOWED, HeldForward

__all__ = ["HeldOnlyError", "follow_if_held_only"]


class RunOfMode(Protocol):
    """A held run, with the mode that met its operations."""

    @property
    def mode(self) -> HeldForward:
        """The mode of the run."""


class WhatWasRead(Protocol):
    """What was read of a held run."""

    @property
    def held(self) -> frozenset[int]:
        """Numbers of the held results that the output reads by themselves."""


Run = TypeVar("Run", bound=RunOfMode)
Read = TypeVar("Read", bound=WhatWasRead)


@dataclass(frozen=True)
class _Followed:
    """Which held results are followed: those from a number on, and others.

    A run that follows one meets more results than the plain run, as of the logarithm of a softmax.
    """

    first: int
    beside: frozenset[int] = frozenset()

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and (number >= self.first or number in self.beside)


class HeldOnlyError(UnsupportedOperationError):
    """The output reads the model by held results only, if at all."""


def follow_if_held_only(
    run: Callable[[Container[int]], Run], read: Callable[[Run], Read]
) -> tuple[Read, Container[int], tuple[str, ...]]:
    """Read a held run; where that tells nothing, let the results that were held last be followed.

    Only as many are followed as it takes: softmax in the middle of a model stays a multiplier. Where one has to be
    followed, so is any other result that the output reads beside it, as of the other members of an ensemble.

    Args:
        run: Runs the model held; the results with these numbers are followed.
        read: Reads the run; raises :class:`HeldOnlyError` where the output does not carry value.

    Returns:
        What was read, the numbers that were followed, and a note on these.

    Raises:
        HeldOnlyError: If following held results is of no use.
    """
    plain = run(())
    holds = plain.mode.holds
    try:
        return read(plain), (), ()
    except HeldOnlyError as error:
        place = _place(len(holds), lambda first: read(run(_Followed(first))))
        if place is None and holds:
            with suppress(HeldOnlyError):  # that of the plain run says more; another error names what has no rule
                read(run(_Followed(0)))
        if place is None:
            held = ", ".join(dict.fromkeys(holds[-3:]))
            raise HeldOnlyError(f"{error}{f' (held last: {held})' if held else ''}") from error
    follows = _Followed(place)
    followed = run(follows)
    found = read(followed)
    while beside := {number for number in found.held if followed.mode.holds[number] in FOLLOWED}:
        follows = _Followed(place, follows.beside | beside)
        followed = run(follows)
        found = read(followed)
    holds = followed.mode.holds
    names = ", ".join(dict.fromkeys(name for k, name in enumerate(holds) if k in follows and name in FOLLOWED))
    note = f"the target is a result of {names}, not a logit: its slopes are averaged along a straight line"
    return found, follows, (note,)


def _place(count: int, attempt: Callable[[int], object]) -> int | None:
    """Return the last of ``count`` held results from which on all have to be followed; None if that is of no use."""

    def works(place: int) -> bool:
        try:
            attempt(place)
        except UnrolledError:
            return False
        return True

    if count and works(count - 1):
        return count - 1
    if not count or not works(0):
        return None
    first, last = 0, count - 1
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if works(middle) else (first, middle)
    return first
