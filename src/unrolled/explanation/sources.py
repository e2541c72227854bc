"""The arguments of a model as sources of value: numbers are rows, token ids are numbered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.errors import UnknownNameError, UsageError, kind_of
from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.token_ids.token_vectors import INTEGERS
from unrolled.model_runs.nested_tensors import Copies, items_of, tensors_in, with_parts
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["Sources", "is_mask", "source_module"]

Change = Callable[[str, Tensor], Tensor]
"""From the name of a tensor, and the tensor, to what the model receives in its place."""
_MASKED = -750.0
"""Below it exp(·) is zero, also in float64: models add such numbers to scores that are not to count."""


class Sources:
    """Opens the arguments of one call, and knows which tokens are whose.

    Args:
        mode: The held forward of the call.
    """

    def __init__(self, mode: HeldForward) -> None:
        self.mode = mode
        self.entries: dict[str, tuple[int, torch.Size]] = {}
        """For each argument: the number of its first entry, and its shape."""
        self.unread: list[str] = []
        """Arguments that are not searched for tensors, each with its type and with what to pass instead."""
        self.masks: set[str] = set()
        """Floating-point arguments that are masks: they multiply by zero or one, or add zero or minus infinity."""
        self.copied = False
        """Whether the arguments were copied: a submodule is the source."""
        self._count = 0
        self._has_masks = False

    def open_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call as the model receives them; positional ones are named by their places.

        Floating-point numbers that are all zero or one, beside any other argument, are a mask: where they multiply
        other value they are held, as integers are.
        """
        self._has_masks = not all(map(is_mask, tensors_in((args, kwargs))))
        return self._with_tensors(args, kwargs, self._open)

    def copy_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return copies of the arguments of a call whose source is a submodule."""
        self.copied = True
        return self._with_tensors(args, kwargs, lambda _, value: value.detach().clone())

    def _with_tensors(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], change: Change
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call with other tensors, by their names."""
        made: Copies = {}  # one for all arguments: a node of a tree may stand in several
        given = [self._with_tensor(str(place), value, change, made) for place, value in enumerate(args)]
        return given, {name: self._with_tensor(name, value, change, made) for name, value in kwargs.items()}

    def _with_tensor(self, name: str, value: Any, change: Change, made: Copies) -> Any:
        if isinstance(value, Tensor):
            return change(name, value)
        if type(value) is PackedSequence:
            return value._replace(data=change(name, value.data))
        if items_of(value) is None:
            if value is not None and not isinstance(value, bool | int | float | str | bytes):
                self.unread.append(f"argument {name} is {kind_of(value)}, {_way_to_read(value)}")
            return value
        return with_parts(value, lambda key, each: self._with_tensor(f"{name}.{key}", each, change, made), made)

    def _open(self, name: str, value: Tensor) -> Tensor:
        value = _checked(name, value)
        if value.is_floating_point():
            opened, multiplies = self.mode.open(name, value, self._number(name, value)), is_mask(value)
            if self._has_masks and (multiplies or _is_mask_of_scores(value)):
                self.masks.add(name)
            return self.mode.vectors.numbers.add(opened) if self._has_masks and multiplies else opened
        copy = value.detach().clone()
        if value.dtype in (*INTEGERS, torch.bool):
            numbers = torch.arange(copy.numel(), device=copy.device) + self._number(name, copy)
            self.mode.positions.open(copy, numbers.reshape(copy.shape))
            self.mode.vectors.computed.name_masks(copy)
        return copy

    def _number(self, name: str, value: Tensor) -> int:
        """Number the entries of an argument, and return the number of the first."""
        first, self._count = self._count, self._count + value.numel()
        self.entries[name] = (first, value.shape)
        return first


def _checked(name: str, value: Tensor) -> Tensor:
    if value.is_complex():
        raise UsageError(f"argument {name} is complex; pass its real and its imaginary part as two real tensors")
    if _is_sparse(value):
        raise UsageError(f"argument {name} is sparse; pass a dense tensor: x.to_dense()")
    return value


def _is_sparse(value: Tensor) -> bool:
    # is_sparse is false of the compressed ones
    return value.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def _way_to_read(value: object) -> str:
    """Say what to pass in place of an argument that is not searched for tensors."""
    if hasattr(value, "__array__"):
        return "whose numbers cannot be followed; pass a tensor of them: torch.as_tensor(…)"
    return "which is not searched for tensors; pass them in a tuple, a list, a dictionary or a dataclass"


def is_mask(value: Tensor) -> bool:
    """Tell whether numbers are all zero or one."""
    return not value.is_complex() and value.layout == torch.strided and bool(((value == 0) | (value == 1)).all())


def _is_mask_of_scores(value: Tensor) -> bool:
    """Whether numbers are zero, or so low that a softmax of what they are added to is zero."""
    return value.layout == torch.strided and bool(((value == 0) | (value <= _MASKED)).all())


@contextmanager
def source_module(model: nn.Module, mode: HeldForward, name: object) -> Iterator[None]:
    """Let the output of a submodule be the source of value."""
    if name is None:
        yield
        return
    modules = all_modules(model)
    path = next((path for path, module in modules.items() if module is name), None)
    if path is not None:
        advice = f"which is of={path!r} for this one" if path else "and this is the model itself: leave it out"
        raise UsageError(f"of is {kind_of(name)}; expected the path of a submodule, {advice}")
    if not isinstance(name, str) or name not in modules:
        raise UnknownNameError("submodule", name, filter(None, modules))  # the model itself has no name
    calls = 0

    def opened(_: nn.Module, __: Any, result: Any) -> Any:
        nonlocal calls
        calls += 1
        if not isinstance(result, Tensor) or not result.is_floating_point():
            raise UsageError(f"{name} returns {kind_of(result)}; choose a submodule that returns one tensor")
        if _is_sparse(result):
            raise UsageError(f"{name} returns a sparse tensor; choose a submodule that returns a dense one")
        with torch._C.DisableTorchFunction():  # the mode is on here, and would carry on what was before
            return mode.open(name if calls == 1 else f"{name}, call {calls}", result)

    with modules[name].register_forward_hook(in_this_thread(opened)):
        yield
