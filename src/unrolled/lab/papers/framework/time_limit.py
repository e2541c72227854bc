"""A limit on the time of a trial, which saves a checkpoint before it stops."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from unrolled.errors import StoppedError

__all__ = ["TimeIsUp", "time_limit"]


class TimeIsUp(Exception):  # noqa: N818  # the caller set the limit, so this is no error
    """What ran was stopped at the end of its time."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Send SIGTERM to this process when the time is up, and raise TimeIsUp for the StoppedError that it leads to.

    A signal of another process leads to a StoppedError as before. Only the main thread receives signals; in another
    thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    time_is_up = threading.Event()

    def ring() -> None:
        time_is_up.set()
        _thread.interrupt_main(signal.SIGTERM)

    def stop(_number: int, _frame: FrameType | None) -> None:  # while no training runs, which has its own handler
        raise StoppedError("interrupted; give the same command again to continue")

    before = signal.signal(signal.SIGTERM, stop)
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    except StoppedError:
        if time_is_up.is_set():
            raise TimeIsUp from None
        raise
    finally:
        timer.cancel()
        signal.signal(signal.SIGTERM, before)
