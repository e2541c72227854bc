"""SIGTERM and Ctrl-C, heard between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, NoReturn

from unrolled.errors import StoppedError

__all__ = ["Interruption"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Hears signals while it is open; a second Ctrl-C is not waited for.

    Only the main thread hears signals: a training in another one is stopped as its program says.
    """

    def __init__(self) -> None:
        self.heard: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.heard is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.heard = number

    def leave(self, text: str) -> NoReturn:
        """End the training."""
        if self.heard == signal.SIGINT:
            raise KeyboardInterrupt(text)
        raise StoppedError(text)
