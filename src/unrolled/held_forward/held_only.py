"""Outputs that read a model by held results only: a softmax at its end, an exponential of a distance."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from unrolled.errors import UnrolledError, UnsupportedOperationError
from unrolled.held_forward.mode import FOLLOWED, HeldForward

__all__ = ["HeldOnlyError", "follow_if_held_only"]


class RunOfMode(Protocol):
    """A held run, with the mode that met its operations."""

    @property
    def mode(self) -> HeldForward:
        """The mode of the run."""


Run = TypeVar("Run", bound=RunOfMode)
Read = TypeVar("Read")


class HeldOnlyError(UnsupportedOperationError):
    """The output reads the model by held results only, if at all."""


def follow_if_held_only(run: Callable[[int | None], Run], read: Callable[[Run], Read]) -> tuple[Read, tuple[str, ...]]:
    """Read a held run; where that tells nothing, let the results that were held last be followed.

    Only as many are followed as it takes: softmax in the middle of a model stays a multiplier.

    Args:
        run: Runs the model held; the results from the given number on are followed.
        read: Reads the run; raises :class:`HeldOnlyError` where the output does not carry value.

    Returns:
        What was read, and a note on what was followed.

    Raises:
        HeldOnlyError: If following held results is of no use.
    """
    plain = run(None)
    holds = plain.mode.holds
    try:
        return read(plain), ()
    except HeldOnlyError as error:
        place = _place(len(holds), lambda first: read(run(first)))
        if place is None and holds:
            with suppress(HeldOnlyError):  # that of the plain run says more; another error names what has no rule
                read(run(0))
        if place is None:
            held = ", ".join(dict.fromkeys(holds[-3:]))
            raise HeldOnlyError(f"{error}{f' (held last: {held})' if held else ''}") from error
    names = ", ".join(dict.fromkeys(name for name in holds[place:] if name in FOLLOWED))
    note = f"the target is a result of {names}, not a logit: its slopes are averaged along a straight line"
    return read(run(place)), (note,)


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
