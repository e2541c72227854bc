"""The processor time of a piece of work, which does not depend on what other programs do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["least_time", "timed"]

_RUNS = 3
R = TypeVar("R")


def timed(work: Callable[[], R]) -> tuple[R, float]:
    """Call a function, and measure the seconds of processor time that it takes."""
    began = time.process_time()
    done = work()
    return done, time.process_time() - began


def least_time(work: Callable[[], object]) -> float:
    """Call a function three times, and return the least of the seconds of processor time."""
    return min(timed(work)[1] for _ in range(_RUNS))
