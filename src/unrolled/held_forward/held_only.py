"""Outputs that read a model by held results only: a softmax at its end, an exponential of a distance."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from torch import Tensor

from unrolled.errors import UnrolledError, UnsupportedOperationError
from unrolled.held_forward.graph import has_matrix_product
from unrolled.held_forward.mode import FOLLOWED, HeldForward

__all__ = ["HeldOnlyError", "follow_if_held_only", "held_last"]


class RunOfMode(Protocol):
    """A held run, with the mode that met its operations."""

    @property
    def mode(self) -> HeldForward:
        """The mode of the run."""

    @property
    def output(self) -> Tensor:
        """Its output, with its graph."""


class WhatWasRead(Protocol):
    """What was read of a held run."""

    @property
    def held(self) -> frozenset[int]:
        """Numbers of the held results that the output reads by themselves."""


T = TypeVar("T")
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
    held_names = plain.mode.held_names
    try:
        return read(plain), (), ()
    except HeldOnlyError as error:

        def attempt(first: int) -> tuple[_Followed, Run, Read]:
            follows = _Followed(first)
            followed = run(follows)
            return follows, followed, read(followed)

        last = _last_that_works(len(held_names), attempt)
        if last is None:
            raise HeldOnlyError(f"{error}{held_last(held_names)}") from error
    follows, followed, found = last
    while beside := {number for number in found.held if followed.mode.held_names[number] in FOLLOWED}:
        follows = replace(follows, beside=follows.beside | beside)
        followed = run(follows)
        found = read(followed)
    held_names = followed.mode.held_names
    names = ", ".join(dict.fromkeys(name for k, name in enumerate(held_names) if k in follows and name in FOLLOWED))
    if has_matrix_product(followed.output, followed.mode.followed):
        note = f"contributions pass through results of {names}, whose slopes are averaged along a straight line"
    else:
        note = f"the target is a result of {names}, not a logit: its slopes are averaged along a straight line"
    return found, follows, (note,)


def held_last(names: Sequence[str]) -> str:
    """Name the operations whose results were held last, behind the sentence that says what they are to the output."""
    last = ", ".join(dict.fromkeys(names[-3:]))
    return f" (held last: {last})" if last else ""


def _last_that_works(count: int, attempt: Callable[[int], T]) -> T | None:
    """Attempt to follow the last of ``count`` held results, as few as works; return None if no attempt works.

    If following from one on works, so does following from any before it.
    """

    def tried(place: int) -> T | None:
        try:
            return attempt(place)
        except UnrolledError:
            return None

    if not count:
        return None
    first, last = 0, count - 1
    if last and (found := tried(last)) is not None:
        return found
    try:
        found = attempt(first)
    except HeldOnlyError:  # that of the plain run says more; another error names what has no rule
        return None
    while last - first > 1:
        middle = (first + last) // 2
        if (better := tried(middle)) is None:
            last = middle
        else:
            first, found = middle, better
    return found
