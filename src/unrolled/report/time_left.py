"""Lines about a long explanation while it is computed: how far it has come, and how long the rest will take."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from unrolled.decomposition.recurrences.sweep_progress import told_of_sweeps

__all__ = ["progress"]

_FIRST, _EVERY = 10.0, 60.0
"""Seconds of the sweeps until the first line, and between two."""
_SILENT = 65.0
"""Seconds without a line, before the sweeps or after them, until one says that the command still runs."""


def _to_standard_error(line: str) -> None:
    """Print a line, if standard error is there and read: the work goes on without."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


@contextmanager
def progress(what: str = "unrolled", say: Callable[[str], object] = _to_standard_error) -> Iterator[None]:
    """Print how far long work has come that this thread begins within the block, and how long the rest will take.

    Of :func:`unrolled.explain` and :func:`unrolled.explain_batch` the first line comes ten seconds after the sweeps
    over the text have begun, in which a long text spends nearly all of its time. Of other work a line says each minute
    for how long it has run. Work that is over sooner prints nothing. Of blocks in each other the innermost one tells of
    the sweeps, and every one for how long it has run.

    Args:
        what: What each line begins with.
        say: Takes a line, which ends in no newline; a thread of its own may call it. If it raises, the work goes on, no
            more lines are said, and a warning says why at the end of the block. The default prints to standard error.

    Example:
        >>> import torch, unrolled
        >>> model = torch.nn.LSTM(3, 4, batch_first=True)
        >>> with unrolled.progress("a year of hours"):  # prints, say, "a year of hours: 13% done, about 4 min left"
        ...     found = unrolled.explain(model, torch.randn(1, 50, 3), target=lambda out: out[0][:, -1, 0])
    """
    lines, over = _Lines(what, say), Event()
    waiting = Thread(target=lines.break_silence, args=(over,), daemon=True)
    waiting.start()
    try:
        with told_of_sweeps(lines.tell):
            yield
    finally:
        over.set()
        waiting.join()
    if lines.failed is not None:
        why = f"{type(lines.failed).__name__}: {lines.failed}"
        warnings.warn(f"unrolled.progress said no more lines, since say raised {why}", stacklevel=3)


class _Lines:
    """What is said of the work of one block."""

    def __init__(self, what: str, say: Callable[[str], object]) -> None:
        self._what, self._say_line = what, say
        self._started = self._said = time.monotonic()
        self._begun: tuple[float, float] | None = None
        """When the sweeps began, and the share of their steps that was done then."""
        self._share, self._due = 0.0, 0.0
        self._one_line = Lock()
        self.failed: Exception | None = None
        """What ``say`` raised."""

    def tell(self, share: float) -> None:
        """Say how much of the sweeps is done and left, when a line is due."""
        now = time.monotonic()
        before, self._share = self._share, share
        if self._begun is None or share <= before:  # only steps of these sweeps tell how long one takes
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
        with self._one_line:  # of the thread that works and the one that waits
            if self.failed is None:
                try:
                    self._say_line(f"{self._what}: {text}")
                except Exception as error:  # a line is worth no result
                    self.failed = error


def _duration(seconds: float) -> str:
    """Write a time as people say it: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
