"""The tensors in the arguments of an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

__all__ = ["carries", "detached", "for_each_tensor", "operands", "without_flags"]


def operands(values: Any) -> list[Tensor]:
    """All tensors in the arguments of a call."""
    found: list[Tensor] = []
    for each in values:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, tuple | list):
            found.extend(operands(each))
    return found


def carries(value: object) -> bool:
    """Whether a tensor carries value: what is computed from it is linear in it."""
    return isinstance(value, Tensor) and value.requires_grad


def detached(value: Any) -> Any:
    """The same arguments, without value."""
    return for_each_tensor(value, Tensor.detach)


def for_each_tensor(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same arguments, with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, PackedSequence):
        return value._replace(data=change(value.data))
    if isinstance(value, tuple | list):
        return type(value)(for_each_tensor(each, change) for each in value)
    if isinstance(value, dict):
        return {key: for_each_tensor(each, change) for key, each in value.items()}
    return value


def without_flags(value: Any) -> Any:
    """The same arguments, where no parameter requires a gradient."""
    return for_each_tensor(value, lambda each: each.detach() if type(each) is torch.nn.Parameter else each)
