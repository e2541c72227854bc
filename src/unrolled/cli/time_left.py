"""Lines about a long explanation while it is computed: how far it has come, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import typer

__all__ = ["tell_time_left"]

_FIRST, _EVERY = 10.0, 60.0
"""Seconds of the sweeps until the first line, and between two."""
_SILENT = 65.0
"""Seconds without a line, before the sweeps or after them, until one says that the command still runs."""


@contextmanager
def tell_time_left(tokens: int, expansion: str) -> Iterator[None]:
    """Print a line to standard error from time to time while a text of so many tokens is explained."""
    from unrolled.decomposition.sweep_progress import told_of_sweeps

    lines, over = _Lines(f"{tokens:,} tokens by {expansion}"), Event()
    waiting = Thread(target=lines.break_silence, args=(over,), daemon=True)
    waiting.start()
    try:
        with told_of_sweeps(lines.tell):
            yield
    finally:
        over.set()
        waiting.join()


class _Lines:
    """What is said of one explanation."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._said = time.monotonic()
        self._begun: tuple[float, float] | None = None
        """When the sweeps began, and the share of their steps that was done then."""
        self._due = 0.0

    def tell(self, share: float) -> None:
        """Say how much of the sweeps is done and left, when a line is due."""
        now = time.monotonic()
        if self._begun is None or share <= self._begun[1]:  # only steps of these sweeps tell how long one takes
            self._begun, self._due = (now, share), now + _FIRST
        elif now >= self._due and share < 1:
            self._due = now + _EVERY
            left = (now - self._begun[0]) * (1 - share) / (share - self._begun[1])
            self._say(f"{share:.0%} done, about {_duration(left)} left")

    def break_silence(self, over: Event) -> None:
        """Say once a minute that the command still runs, where nothing else is said."""
        while not over.wait(max(0.0, self._said + _SILENT - time.monotonic())):
            if time.monotonic() - self._said >= _SILENT:
                self._say(f"running for {_duration(time.monotonic() - self._started)}")

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        typer.echo(f"{self._what}: {text}", err=True)


def _duration(seconds: float) -> str:
    """Write a time as people say it: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
