"""Handle SIGTERM and Ctrl-C between two steps."""

from __future__ import annotations

import shlex
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from unrolled.errors import StoppedError

__all__ = ["Interruption"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Record SIGTERM and SIGINT while this context is open; a second Ctrl-C interrupts at once.

    Only the main thread receives signals; in another thread this context does nothing. A signal that the process was
    started to ignore, as Ctrl-C is for a script's command in the background, stays ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._receive) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number

    def raise_stop(self, said: str, command: str, folder: Path) -> NoReturn:
        """Raise KeyboardInterrupt after Ctrl-C, and StoppedError after SIGTERM in this process or another one.

        Args:
            said: What has happened, before a colon.
            command: The command that goes on with the run.
            folder: The run.
        """
        text = f"{said}: unrolled {command} {shlex.quote(str(folder))}"
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt(text)
        raise StoppedError(text)
