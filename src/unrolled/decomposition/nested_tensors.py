"""Tensors within the arguments and results of a model: in tuples, lists, dictionaries and dataclasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

__all__ = ["copy_tensors", "items_of", "tensors_in", "with_items"]


def copy_tensors(value: object) -> Any:
    """Copy the tensors in a model's arguments or results; tuples, lists, dictionaries and dataclasses are searched.

    A model may work in place; and autograd refuses tensors that were made in inference mode.
    """
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) is PackedSequence:
        return PackedSequence(*map(copy_tensors, value))
    items = items_of(value)
    return value if items is None else with_items(value, {key: copy_tensors(item) for key, item in items.items()})


def tensors_in(value: object) -> Iterator[Tensor]:
    """Walk through the tensors in a model's arguments or results, also those of packed batches and other tuples."""
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, tuple | list):
        value = dict(enumerate(value))
    items = value if isinstance(value, Mapping) else items_of(value)
    for item in (items or {}).values():
        yield from tensors_in(item)


def items_of(value: object) -> dict[Any, Any] | None:
    """Return the parts of a tuple, list, dictionary or dataclass; None for anything else."""
    if type(value) is tuple or type(value) is list or (isinstance(value, tuple) and _is_named(value)):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}
    return None


def with_items(value: Any, items: Mapping[Any, Any]) -> Any:
    """Return a container of the same kind with other parts."""
    if isinstance(value, tuple | list):
        return type(value)(*items.values()) if _is_named(value) else type(value)(items.values())
    made = copy(value)
    if isinstance(made, dict):
        made.update(items)
        return made
    for name, item in items.items():
        object.__setattr__(made, name, item)
    return made


def _is_named(value: object) -> bool:
    return hasattr(value, "_fields") and not isinstance(value, PackedSequence)
