"""Ctrl-C and SIGTERM at any moment: one line that names the command that goes on, and exit code 130 or 143.

While a command works, a signal is raised as an exception, so that temporary files are removed. Before that, while
modules are imported, there is nothing to remove, and the process ends at once. So does a second signal. Once the
command has ended, signals are ignored. This module imports nothing but small parts of the standard library: it is there
before anything else.
"""

from __future__ import annotations

import os
import shlex  # here: a signal may come while one of its own imports is half done
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = [
    "CommandInterrupted",
    "SignalReceived",
    "advice",
    "advise_with",
    "ignore",
    "install",
    "received",
    "working",
]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class SignalReceived(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, as an exception that no ``except Exception`` stops."""


class CommandInterrupted(Exception):  # noqa: N818  # not an error: somebody asked for it
    """A command was interrupted; ``text`` says how to go on, and is empty if the command does not know."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        super().__init__(*stop.args[:1])
        self.text = str(stop.args[0]) if stop.args else ""


def _nothing() -> str:
    return ""


class _State:
    received: int | None = None
    working = False
    own_advice: Callable[[], str] = staticmethod(_nothing)


def install() -> None:
    """Handle the signals of this process from now on; a signal that it was started to ignore stays ignored."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _receive)
    sys.unraisablehook = _unraisable


@contextmanager
def working() -> Iterator[None]:
    """Raise a signal as an exception while this context is open."""
    _State.working = True
    try:
        yield
    finally:
        _State.working = False


def ignore() -> None:
    """Ignore signals from now on: the command has ended, and only Python's own end is left."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def received() -> int | None:
    """Return the number of the signal that this process has received, or None."""
    return _State.received


def advise_with(own_advice: Callable[[], str] = _nothing) -> None:
    """Say from now on what ``own_advice`` returns, unless it is empty: what a command has written may be the way on.

    A signal that comes while Python calls a weak reference's function raises nothing that this command could catch; the
    process ends there, with the same line.
    """
    _State.own_advice = staticmethod(own_advice)


def advice(words: Sequence[str]) -> str:
    """Return the line of an interrupted command: its own advice, or to start it again as it was."""
    return _State.own_advice() or f"interrupted; start it again with: {shlex.join(('unrolled', *words))}"


def _receive(number: int, _frame: FrameType | None) -> None:
    first = _State.received is None
    _State.received = number
    if first and _State.working:
        raise SignalReceived
    _end(number)


def _end(number: int) -> None:
    """End the process at once, with a line; a progress bar may have hidden the cursor."""
    try:
        if os.isatty(2):
            os.write(2, b"\n" + _SHOW_CURSOR)
        shown = "".join(each if each.isprintable() else "?" for each in advice(sys.argv[1:]))
        os.write(2, f"unrolled: error: {shown}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(128 + number)


def _unraisable(found: Any) -> None:
    """End the process where a signal was raised in code from which no exception can get out."""
    if isinstance(found.exc_value, SignalReceived):
        _end(_State.received or signal.SIGINT)
    sys.__unraisablehook__(found)
