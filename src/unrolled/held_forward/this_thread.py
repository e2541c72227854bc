"""Functions that only the thread which is here calls: others may run the same model meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any

__all__ = ["in_this_thread"]


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
