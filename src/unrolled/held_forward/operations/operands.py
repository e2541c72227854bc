"""The tensors in the arguments of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

__all__ = [
    "carries",
    "detached",
    "for_each_tensor",
    "has_flags",
    "holds_integers",
    "holds_numbers",
    "is_parameter",
    "of_kind",
    "operands",
    "without_flags",
]


def operands(values: Any) -> list[Tensor]:
    """Return all tensors in the arguments of a call."""
    found: list[Tensor] = []
    for each in values:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, tuple | list):
            found.extend(operands(each))
    return found


def of_kind(values: Any, others: Iterable[Any]) -> Any:
    """Put others into a tuple or list of the same kind; a tuple with names is made by another call."""
    return values._make(others) if hasattr(values, "_make") else type(values)(others)


_SEVERAL = (tuple, list)


def holds_numbers(tensor: Tensor) -> bool:
    """Tell whether entries are real or complex numbers: integers and answers carry no value."""
    return tensor.is_floating_point() or tensor.is_complex()


def holds_integers(tensor: Tensor) -> bool:
    """Tell whether entries are integers, which may be ids or places of rows."""
    return not holds_numbers(tensor) and tensor.dtype != torch.bool


def is_parameter(value: object) -> bool:
    """Tell whether a tensor is a parameter, of whatever class."""
    return type(value) is not Tensor and isinstance(value, torch.nn.Parameter)


def carries(value: object) -> bool:
    """Tell whether a tensor carries value: what is computed from it is linear in it.

    A parameter asks for a gradient and carries none.
    """
    return isinstance(value, Tensor) and value.requires_grad and (type(value) is Tensor or not is_parameter(value))


def detached(value: Any) -> Any:
    """Return the same arguments without value."""
    return for_each_tensor(value, Tensor.detach)


def for_each_tensor(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the same arguments with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, PackedSequence):
        return value._replace(data=change(value.data))
    if isinstance(value, tuple | list):
        return of_kind(value, (for_each_tensor(each, change) for each in value))
    if isinstance(value, dict):
        return {key: for_each_tensor(each, change) for key, each in value.items()}
    return value


def has_flags(values: Iterable[Any]) -> bool:
    """Tell whether a parameter among the arguments of a call requires a gradient."""
    for each in values:  # of every operation of a run: the most frequent kinds come first
        kind = type(each)
        if kind is Tensor or kind is int:
            continue
        if (kind is torch.nn.Parameter and each.requires_grad) or (isinstance(each, _SEVERAL) and has_flags(each)):
            return True
        if is_parameter(each) and each.requires_grad:
            return True
    return False


def without_flags(value: Any) -> Any:
    """Return the same arguments, where no parameter requires a gradient.

    The flag of the parameter itself stays: other threads may differentiate by it meanwhile.
    """
    return for_each_tensor(value, _without_flag)


def _without_flag(value: Tensor) -> Tensor:
    """Return a parameter of the same memory that requires no gradient, and any other tensor as it is."""
    if type(value) is torch.nn.Parameter:
        return torch.Tensor._make_subclass(torch.nn.Parameter, value, False) if value.requires_grad else value
    return value.detach() if is_parameter(value) else value  # of a class that may hold more than numbers
