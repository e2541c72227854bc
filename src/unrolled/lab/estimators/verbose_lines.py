"""Lines about a long training or explanation, for a user who asks for them by ``verbose``."""

from __future__ import annotations

import sys

from unrolled.lab.minute_lines import MinuteLines

__all__ = ["verbose_lines"]


def verbose_lines(asked: object) -> MinuteLines:
    """Return the lines of one call, which are written only if ``verbose`` asks for them.

    Lines go to standard output as those of scikit-learn do: a search runs many estimators at once, in
    threads and in processes, and only whole lines of theirs can stand below one another. A bar could not.
    """
    return MinuteLines(_print if asked else _leave_out)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # a process of a search keeps its lines back otherwise


def _leave_out(line: str) -> None:
    """Write nothing."""
