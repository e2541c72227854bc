"""Lines about a long training or explanation, for a user who asks for them by ``verbose``."""

from __future__ import annotations

import sys
import time

__all__ = ["VerboseLines"]

_EVERY = 60.0
"""Seconds between two lines within an epoch: a cell of a notebook that stands still looks like one that hangs."""


class VerboseLines:
    """Lines about one call, written where ``verbose`` asks for them.

    Lines go to standard output as those of scikit-learn do: a search runs many estimators at once, in
    threads and in processes, and only whole lines of theirs can stand below one another. A bar could not.
    """

    def __init__(self, asked: object) -> None:
        self._asked = bool(asked)
        self._said = time.monotonic()

    def say(self, text: str) -> None:
        """Write a line."""
        if self._asked:
            self._said = time.monotonic()
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()  # a process of a search keeps its lines back otherwise

    def say_if_due(self, text: str) -> None:
        """Write a line where a minute has passed since the last one."""
        if time.monotonic() - self._said >= _EVERY:
            self.say(text)
