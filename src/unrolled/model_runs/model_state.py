"""What a forward pass may change in a model: attributes, entries of parameters and buffers, containers, tensors."""

from __future__ import annotations

import types
from collections import deque
from operator import is_
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.model_runs.random_generators import is_generator
from unrolled.user_models.all_modules import OF_EVERY_MODULE, TABLES, all_buffers, all_modules, all_parameters

__all__ = ["ModelState"]

_SEARCHED = 1000
"""Entries of a longer container are not searched for further containers; the container itself is restored."""
_LARGEST = 20_000
"""Number of objects that are searched at most."""
_ATOMS: tuple[type, ...] = (
    *(str, bytes, int, float, complex, bool, type(None), type, torch.device, torch.dtype),
    *(types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType),
)


class ModelState:
    """A model as it is now: every module's attributes, what they hold, buffers, and where parameters store numbers.

    Attributes may hold lists, dictionaries, sets, deques and objects of the user's own, in any depth. The numbers of
    buffers and of tensors are copied. Those of parameters are not, but for embeddings with ``max_norm``, which scale
    their weights in the forward pass.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = dict.fromkeys(all_parameters(model).values())
        self._places = [(each, each.data, each.requires_grad) for each in parameters]
        self.generators: list[Any] = []
        """The random generators that the model keeps."""
        self._spaces: list[tuple[Any, Any]] = []
        self._hooks: set[int] = set()
        self._seen: set[int] = set(map(id, parameters))
        self._tensors: list[tuple[Tensor, Tensor, bool]] = []
        for buffer in all_buffers(model).values():
            self._keep_tensor(buffer)
        modules = list(all_modules(model).values())
        for module in modules:
            self._seen.add(id(module))
            if isinstance(module, TABLES) and module.max_norm is not None:
                self._tensors.append((module.weight, module.weight.detach().clone(), True))
        for module in modules:
            self._keep(vars(module))
            for name, value in vars(module).items():
                if name not in OF_EVERY_MODULE:
                    self._search(value)
                elif isinstance(value, dict):
                    self._keep(value)
                    if "hooks" in name:
                        self._hooks.add(id(value))

    def restore(self, between_runs: bool = False) -> None:
        """Make the model what it was.

        Args:
            between_runs: Whether hooks, a replaced ``forward`` and replaced methods of ours stay.
        """
        for space, before in self._spaces:
            if not before and not len(space):  # most of a module's dictionaries: this runs before each of its runs
                continue
            if not _is_same(space, before) and not (between_runs and id(space) in self._hooks):
                _restore(space, before, _replaced(space) if between_runs else ())
        with torch._C.DisableTorchFunction(), torch.no_grad():  # a mode of ours may be on
            for parameter, data, flag in self._places:
                if not _is_at(parameter, data):
                    parameter.data = data
                if parameter.requires_grad != flag:
                    parameter.requires_grad_(flag)
            for tensor, numbers, leaf in self._tensors:
                if tensor.grad_fn is not None and leaf and not tensor._is_view():
                    tensor.detach_()  # a held run wrote value into it
                if not torch.equal(tensor, numbers):
                    tensor.copy_(numbers)

    def _keep(self, space: Any) -> None:
        if id(space) not in self._seen:
            self._seen.add(id(space))
            kind = dict if isinstance(space, dict) else set if isinstance(space, set) else list
            self._spaces.append((space, kind(space)))

    def _keep_tensor(self, tensor: Tensor) -> None:
        self._seen.add(id(tensor))
        if tensor.layout == torch.strided and not tensor.is_meta:
            with torch.no_grad():
                copied = tensor.detach().clone()
            self._tensors.append((tensor, copied, tensor.grad_fn is None))

    def _search(self, value: Any) -> None:
        """Keep what an attribute holds."""
        waiting = [value]
        while waiting and len(self._seen) < _LARGEST:
            each = waiting.pop()
            if isinstance(each, _ATOMS) or id(each) in self._seen:
                continue
            if isinstance(each, Tensor):
                self._keep_tensor(each)
            elif is_generator(each):
                self._seen.add(id(each))
                self.generators.append(each)
            elif isinstance(each, tuple | frozenset):
                self._seen.add(id(each))
                waiting.extend(each)
            elif isinstance(each, list | dict | set | deque):
                self._keep(each)
                if len(each) <= _SEARCHED:
                    waiting.extend(each.values() if isinstance(each, dict) else each)
            elif type(_attributes(each)) is dict:
                self._seen.add(id(each))
                self._keep(_attributes(each))
                waiting.extend(_attributes(each).values())


def _attributes(value: Any) -> Any:
    """Return the attributes of an object, or None if it has none."""
    return getattr(value, "__dict__", None)


def _replaced(space: Any) -> tuple[str, ...]:
    """Return the names of methods that are replaced while we look at a model."""
    if not isinstance(space, dict):
        return ()
    ours = (
        name
        for name, value in space.items()
        if isinstance(value, types.FunctionType) and str(value.__module__).startswith("unrolled.")
    )
    return ("forward", *ours)


def _is_at(parameter: Tensor, data: Tensor) -> bool:
    """Whether the numbers of a parameter stand where they stood; a sparse one has no place of its own."""
    if parameter.layout != torch.strided or data.layout != torch.strided:
        return False
    return parameter.data_ptr() == data.data_ptr() and parameter.shape == data.shape


def _is_same(space: Any, before: Any) -> bool:
    """Whether a container holds the objects that it held, in the same order: almost always, and quick to tell."""
    if len(space) != len(before) or not all(map(is_, space, before)):
        return False
    return not isinstance(space, dict) or all(map(is_, space.values(), before.values()))


def _restore(space: Any, before: Any, kept: tuple[str, ...]) -> None:
    """Give a container that has other entries now those that it had."""
    if isinstance(space, dict):
        wanted = before | {name: space[name] for name in kept if name in space}
        # not cleared first: another thread may be reading a module's attributes
        for name in [name for name in space if name not in wanted]:
            del space[name]
        for name, value in wanted.items():
            if name not in space or space[name] is not value:
                space[name] = value
        if any(a is not b and a != b for a, b in zip(space, wanted, strict=True)):  # the order of a state dict
            space.clear()
            space.update(wanted)
    elif isinstance(space, set):
        if space != before:
            space.clear()
            space.update(before)
    else:
        space.clear()
        space.extend(before)
