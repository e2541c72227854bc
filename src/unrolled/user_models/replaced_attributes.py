"""Attributes of modules, classes and packages that are replaced for the time of a run, methods above all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn

from unrolled.user_models.this_thread import in_this_thread

__all__ = ["replaced_attributes"]

_ABSENT = object()


@contextmanager
def replaced_attributes(stand_ins: Iterable[tuple[Any, str, object]]) -> Iterator[None]:
    """Replace attributes until the end of the block; what a user put there comes back.

    Another thread that runs the model calls a module's own methods meanwhile. Attributes of a class or a package are
    replaced for all threads. Two threads in such blocks would restore each other's stand-ins, so the caller holds
    ``ONE_THREAD``.

    Args:
        stand_ins: Of each module, class or package, the name of an attribute and what takes its place.
    """
    with ExitStack() as stack:
        for owner, name, stand_in in stand_ins:
            stack.callback(_put, owner, name, vars(owner).get(name, _ABSENT))
            if isinstance(owner, nn.Module) and callable(stand_in):
                stand_in = in_this_thread(stand_in, getattr(owner, name))
            _put(owner, name, stand_in)
        yield


def _put(owner: Any, name: str, value: object) -> None:
    if value is _ABSENT:
        delattr(owner, name)
    elif isinstance(owner, type):
        setattr(owner, name, value)
    else:  # a module's own __setattr__ may do more
        vars(owner)[name] = value
