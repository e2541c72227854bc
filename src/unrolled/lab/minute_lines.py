"""Lines about long work: of its parts, and within a part one a minute."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["MinuteLines"]

_EVERY = 60.0
"""Seconds between two lines within a part: output that stands still looks like a process that hangs."""


class MinuteLines:
    """Writes lines; the first minute begins when this is made."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._said = time.monotonic()

    def say(self, line: str) -> None:
        """Write a line."""
        self._said = time.monotonic()
        self._write(line)

    def say_if_due(self, line: str) -> None:
        """Write a line if a minute has passed since the last one."""
        if time.monotonic() - self._said >= _EVERY:
            self.say(line)
