"""How many of the steps of a long text's sweeps are done.

Nearly all of the time of a long text is in its sweeps, whose steps take about as long as each other. Nothing is counted
where nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["count_steps", "planned_steps", "told_of_sweeps"]

T = TypeVar("T")


@dataclass
class _Count:
    """The steps of the sweeps of one call."""

    tell: Callable[[float], None]
    planned: int = 0
    done: int = 0


_count: ContextVar[_Count | None] = ContextVar("sweep_count", default=None)


@contextmanager
def told_of_sweeps(tell: Callable[[float], None]) -> Iterator[None]:
    """Call ``tell`` with the share of the steps that are done, from 0 to 1, after each step of this thread's sweeps."""
    token = _count.set(_Count(tell))
    try:
        yield
    finally:
        _count.reset(token)


@contextmanager
def planned_steps(steps: int) -> Iterator[None]:
    """Say how many steps the sweeps of this block have; a plan inside another one is a part of it."""
    count = _count.get()
    if count is None or count.planned:
        yield
        return
    count.planned, count.done = steps, 0
    try:
        yield
    finally:
        count.planned = 0


def count_steps(steps: Iterable[T], most: int = 0) -> Iterator[T]:
    """Pass the steps of a sweep through, and tell of each when it is over.

    Of a sweep that ends before ``most`` steps, as none of the others matters, these are over with the last one.
    """
    count = _count.get()
    if count is None or not count.planned:
        yield from steps
        return
    left = most
    for step in steps:
        yield step
        left -= 1
        _tell(count, 1)
    if left > 0:
        _tell(count, left)


def _tell(count: _Count, steps: int) -> None:
    count.done += steps
    count.tell(min(1.0, count.done / count.planned))
