"""Lines about a long explanation while it is computed: how far it has come, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["tell_time_left"]

_FIRST, _EVERY = 10.0, 60.0
"""Seconds until the first line, and between two: a command that says nothing looks like one that hangs."""


@contextmanager
def tell_time_left(tokens: int, expansion: str) -> Iterator[None]:
    """Print a line to standard error from time to time while a text of so many tokens is explained."""
    from unrolled.decomposition.sweep_progress import told_of_sweeps

    begun: tuple[float, float] | None = None
    due = 0.0

    def tell(share: float) -> None:
        nonlocal begun, due
        now = time.monotonic()
        if begun is None or share <= begun[1]:  # the sweeps begin: what came before says nothing about their steps
            begun, due = (now, share), now + _FIRST
        elif now >= due and share < 1:
            due = now + _EVERY
            left = (now - begun[0]) * (1 - share) / (share - begun[1])
            typer.echo(f"{tokens:,} tokens by {expansion}: {share:.0%} done, about {_duration(left)} left", err=True)

    with told_of_sweeps(tell):
        yield


def _duration(seconds: float) -> str:
    """Write a time as people say it: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
