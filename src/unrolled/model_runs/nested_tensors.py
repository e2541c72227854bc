"""Tensors within the arguments and results of a model: in tuples, lists, dictionaries, dataclasses and namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import of_kind

__all__ = ["Copies", "Place", "copy_tensors", "items_of", "leaves", "rebuilt", "tensors_in", "with_parts"]

Place = tuple[Any, ...]
"""Where a tensor stands: the indices, keys and names of fields that lead to it."""

Copies = dict[int, tuple[Any, Any]]
"""Containers and their copies, by the identity of the container, which lives as long as this."""

_WHOLE = frozenset({type(None), bool, int, float, str, bytes, Tensor})
"""Types of what has no parts."""


def copy_tensors(value: object) -> Any:
    """Copy the tensors in a model's arguments or results.

    A model may work in place; and autograd refuses tensors that were made in inference mode.
    """
    return rebuilt(value, {place: each.detach().clone() for place, each in leaves(value)})


def tensors_in(value: object) -> Iterator[Tensor]:
    """Walk through the tensors in a model's arguments or results."""
    return (each for _, each in leaves(value))


def leaves(value: object) -> Iterator[tuple[Place, Tensor]]:
    """Walk through the tensors in arguments or results, each with its place."""
    return _leaves(value, (), {})


def _leaves(value: object, place: Place, inside: dict[int, object]) -> Iterator[tuple[Place, Tensor]]:
    if isinstance(value, Tensor):
        yield place, value
    items = items_of(value)
    if items is None or id(value) in inside:
        return
    inside[id(value)] = value  # which keeps it: a mapping may make its parts anew, and the next would have its identity
    for key, each in items.items():
        yield from _leaves(each, (*place, key), inside)
    if isinstance(value, tuple | list | MutableMapping):
        del inside[id(value)]


def rebuilt(value: Any, tensors: Mapping[Place, Tensor]) -> Any:
    """Return arguments or results with other tensors at some places, or with pairs of numbers for complex ones."""
    made: Copies = {}

    def part(value: Any, place: Place) -> Any:
        if isinstance(value, Tensor):
            other = tensors.get(place, value)
            is_pairs = value.is_complex() and not other.is_complex()
            return torch.complex(*other.unbind(-1)) if is_pairs else other
        if items_of(value) is None:
            return value
        return with_parts(value, lambda key, each: part(each, (*place, key)), made)

    return part(value, ())


def items_of(value: object) -> dict[Any, Any] | None:
    """Return the parts of a tuple, list, dictionary, dataclass or namespace; None for anything else."""
    if type(value) in _WHOLE:  # asked first: a list may hold a million numbers
        return None
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    if isinstance(value, MutableMapping):
        return dict(value)
    if isinstance(value, SimpleNamespace):
        return dict(vars(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}
    return None


def with_parts(value: Any, change: Callable[[Any, Any], Any], made: Copies) -> Any:
    """Return a container of the same kind whose parts are changed.

    Where it is reached again, as the parent of a node of a tree is, it is the one that is being made. A dataclass or
    namespace is one object again, wherever it stands; a list or a dictionary that stands in two places becomes two.

    Args:
        value: A tuple, list, dictionary, dataclass or namespace.
        change: From the key and the part to the new part.
        made: Empty at first.
    """
    if id(value) in made:
        return made[id(value)][1]
    items = items_of(value) or {}
    if isinstance(value, tuple):
        return of_kind(value, [change(key, each) for key, each in items.items()])
    new = _copied(value)
    made[id(value)] = value, new
    for key, each in items.items():
        item = change(key, each)
        if isinstance(new, list | MutableMapping):
            new[key] = item
        else:
            object.__setattr__(new, key, item)  # of a dataclass, which may be frozen, or a namespace
    if isinstance(value, list | MutableMapping):
        del made[id(value)]
    return new


def _copied(value: Any) -> Any:
    """Copy a container, and the mapping that one of a user's class keeps its items in, which a copy would share."""
    new = copy(value)
    if isinstance(value, MutableMapping) and hasattr(new, "__dict__"):
        for name, kept in list(vars(new).items()):
            if isinstance(kept, MutableMapping) and vars(value).get(name) is kept:
                object.__setattr__(new, name, copy(kept))
    return new
