"""All modules of a model: those that torch registers, and those that the model keeps in lists and dictionaries.

``self.cells = [nn.LSTMCell(5, 6)]`` is registered nowhere, and runs all the same. Libraries keep layers so too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from torch import Tensor, nn

__all__ = [
    "OF_EVERY_MODULE",
    "TABLES",
    "all_buffers",
    "all_modules",
    "all_parameters",
    "is_within",
    "modules_inside",
    "unregistered_tensors",
]

OF_EVERY_MODULE = frozenset(vars(nn.Module()))
"""The attributes that every module has: its records of parameters, buffers, submodules and hooks."""
TABLES = (nn.Embedding, nn.EmbeddingBag)
"""Modules whose vectors are looked up."""
_CONTAINERS = (list, tuple, dict)
Kind = TypeVar("Kind")
_MOST = 2000
"""Entries of the containers of a module that are searched: longer ones are vocabularies or data."""
_DEEPEST = 3
"""Containers inside one another that are searched."""


def all_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a model by path: the registered ones first, as ``named_modules`` names them.

    A module in a container of the model's own is named by the attribute and its place: ``cells.0``, ``heads.topic``.
    """
    found = dict(model.named_modules())
    seen = set(map(id, found.values()))
    waiting = deque(found.items())
    while waiting:
        path, module = waiting.popleft()
        for name, kept in _kept(module):
            if id(kept) not in seen:
                for inner, each in kept.named_modules(prefix=f"{path}.{name}".strip(".")):
                    if id(each) not in seen:
                        seen.add(id(each))
                        found[inner] = each
                        waiting.append((inner, each))
    return found


def is_within(path: str, outer: str) -> bool:
    """Tell by paths whether a module is another one, or inside it."""
    return not outer or path == outer or path.startswith(f"{outer}.")


def all_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of all modules by name, each once."""
    return _of_modules(model, dict(model.named_parameters()), "_parameters")


def all_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers of all modules by name, each once."""
    return _of_modules(model, dict(model.named_buffers()), "_buffers")


def unregistered_tensors(model: nn.Module) -> Iterator[Tensor]:
    """Find the tensors that modules keep as plain attributes or in containers."""
    for module in all_modules(model).values():
        yield from (tensor for _, tensor in _inside(_attributes(module), Tensor))


def _of_modules(model: nn.Module, registered: dict[str, Any], record: str) -> dict[str, Any]:
    seen = set(map(id, registered.values()))
    for path, module in all_modules(model).items():
        for name, tensor in vars(module).get(record, {}).items():
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                registered[f"{path}.{name}".strip(".")] = tensor
    return registered


def _kept(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Find the modules that a module keeps beside its registered ones."""
    return modules_inside(_attributes(module))


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """List the attributes of a module's own."""
    return ((name, value) for name, value in list(vars(module).items()) if name not in OF_EVERY_MODULE)


def modules_inside(entries: Iterable[tuple[Any, Any]]) -> Iterator[tuple[str, nn.Module]]:
    """Find the modules among named values and in their containers, with their names."""
    return _inside(entries, nn.Module)


def _inside(entries: Iterable[tuple[Any, Any]], kind: type[Kind]) -> Iterator[tuple[str, Kind]]:
    searched = (*_CONTAINERS, kind)
    waiting: deque[tuple[tuple[Any, ...], Any]] = deque()
    waiting.extend(((name,), value) for name, value in entries if isinstance(value, searched))
    left = _MOST
    while waiting:
        place, value = waiting.popleft()
        if isinstance(value, kind):
            yield ".".join(map(str, place)), value
        elif len(place) <= _DEEPEST and len(value) <= left:
            left -= len(value)
            inside = list(value.items()) if isinstance(value, dict) else enumerate(list(value))
            waiting.extend(((*place, key), each) for key, each in inside if isinstance(each, searched))
