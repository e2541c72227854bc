"""Methods of single modules that are replaced for the time of a run; their classes keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

__all__ = ["replaced_methods"]


@contextmanager
def replaced_methods(stand_ins: Iterable[tuple[nn.Module, str, Callable[..., Any]]]) -> Iterator[None]:
    """Replace methods until the end of the block; one that a user replaced on a module comes back.

    Args:
        stand_ins: Of each module, the name of a method and what is called in its place.
    """
    before: list[tuple[dict[str, Any], str, dict[str, Any]]] = []
    try:
        for module, name, stand_in in stand_ins:
            own = module.__dict__
            before.append((own, name, {name: own[name]} if name in own else {}))
            own[name] = stand_in
        yield
    finally:
        for own, name, method in reversed(before):
            own.pop(name, None)
            own.update(method)
