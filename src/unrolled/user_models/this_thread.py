"""What one thread does while others may run the same model: a lock, and functions that only this thread calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock, get_ident
from typing import Any

__all__ = ["ONE_THREAD", "in_this_thread"]

ONE_THREAD = RLock()
"""Held while modes, attributes or flags of a model or a class are changed: another thread would restore the changed."""
if hasattr(os, "register_at_fork"):
    # a fork waits: its child would have a lock that no thread releases, and a model that no thread restores
    os.register_at_fork(
        before=ONE_THREAD.acquire, after_in_parent=ONE_THREAD.release, after_in_child=ONE_THREAD.release
    )


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, as a hook that changes nothing."""


def in_this_thread(function: Callable[..., Any], elsewhere: Callable[..., Any] = _nothing) -> Callable[..., Any]:
    """Return what calls a function in this thread, and another one in any other thread.

    Args:
        function: A hook, or what takes the place of a module's method.
        elsewhere: What other threads call.
    """
    here = get_ident()

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return (function if get_ident() == here else elsewhere)(*args, **kwargs)

    return called
