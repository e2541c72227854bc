"""Objects in a checkpoint, read as data: no class that it names is imported, and nothing of it is called.

A whole model that was pickled is its attributes, and in these are its tensors. So its state dict is read where its code
is missing, or is not to be run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["load_objects_as_data"]

_MODULE = frozenset({"_parameters", "_buffers", "_modules"})
"""Attributes that every torch.nn.Module has."""


class _Attributes:
    """Stands for a class: a call gives a map, in whose ``__dict__`` torch puts the attributes of the object."""

    # mypy expects an instance of the class, and a call gives a map
    def __new__(cls, *_: object, **__: object) -> OrderedDict[str, object]:  # type: ignore[misc]
        return OrderedDict()


class _Nothing:
    """Stands for a class or function of NumPy, whose objects have no attributes: a call gives an object without any."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def load_objects_as_data(path: Path, names: list[str]) -> object:
    """Load a file of ``torch.save`` where each of these classes and functions is replaced by one that does nothing.

    A module becomes its state dict: parameters and persistent buffers by name, without what hooks would add.
    """
    import torch

    replaced: list[Any] = [(_Nothing if name.startswith("numpy.") else _Attributes, name) for name in names]
    with torch.serialization.safe_globals(replaced):
        return _with_state_dicts(torch.load(path, map_location="cpu", weights_only=True))


def _with_state_dicts(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_with_state_dicts(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    attributes = getattr(value, "__dict__", {})
    if attributes.keys() >= _MODULE:
        return dict(_state_dict(attributes))
    return {name: _with_state_dicts(each) for name, each in value.items()}


def _state_dict(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield what ``state_dict()`` of a module holds."""
    from torch import Tensor

    left_out = attributes.get("_non_persistent_buffers_set", ())
    buffers = {name: each for name, each in attributes["_buffers"].items() if name not in left_out}
    for name, tensor in {**attributes["_parameters"], **buffers}.items():
        if isinstance(tensor, Tensor):
            yield f"{prefix}{name}", tensor
    for name, module in attributes["_modules"].items():
        if module is not None:
            yield from _state_dict(module.__dict__, f"{prefix}{name}.")
