"""Tensors within the arguments and results of a model: in tuples, lists, dictionaries and dataclasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import of_kind

__all__ = ["Place", "copy_tensors", "items_of", "leaves", "rebuilt", "tensors_in", "with_items"]

Place = tuple[Any, ...]
"""Where a tensor stands: the indices, keys and names of fields that lead to it."""


def copy_tensors(value: object) -> Any:
    """Copy the tensors in a model's arguments or results.

    A model may work in place; and autograd refuses tensors that were made in inference mode.
    """
    return rebuilt(value, {place: each.detach().clone() for place, each in leaves(value)})


def tensors_in(value: object) -> Iterator[Tensor]:
    """Walk through the tensors in a model's arguments or results."""
    return (each for _, each in leaves(value))


def leaves(value: object, place: Place = ()) -> Iterator[tuple[Place, Tensor]]:
    """Walk through the tensors in arguments or results, each with its place."""
    if isinstance(value, Tensor):
        yield place, value
    for key, each in (items_of(value) or {}).items():
        yield from leaves(each, (*place, key))


def rebuilt(value: Any, tensors: Mapping[Place, Tensor], place: Place = ()) -> Any:
    """Return arguments or results with other tensors at some places, or with pairs of numbers for complex ones."""
    if isinstance(value, Tensor):
        other = tensors.get(place, value)
        is_pairs = value.is_complex() and not other.is_complex()
        return torch.complex(*other.unbind(-1)) if is_pairs else other
    items = items_of(value)
    if items is None:
        return value
    return with_items(value, {key: rebuilt(each, tensors, (*place, key)) for key, each in items.items()})


def items_of(value: object) -> dict[Any, Any] | None:
    """Return the parts of a tuple, list, dictionary or dataclass; None for anything else."""
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    if isinstance(value, MutableMapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}
    return None


def with_items(value: Any, items: Mapping[Any, Any]) -> Any:
    """Return a container of the same kind with other parts."""
    if isinstance(value, tuple):
        return of_kind(value, items.values())
    made = copy(value)
    for key, item in items.items():
        if isinstance(made, list | MutableMapping):
            made[key] = item
        else:
            object.__setattr__(made, key, item)  # of a dataclass, which may be frozen
    return made
