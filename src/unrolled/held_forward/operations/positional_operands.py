"""Operands that were named in a call, at their positions: rules read them there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch.overrides import get_testing_overrides

__all__ = ["with_positions"]

# torch's own table of signatures lacks the second operand of these, or has another name for one
_OPERANDS = {
    torch.dot: ("input", "tensor"),
    torch.xlogy: ("input", "other"),
    torch.special.xlogy: ("input", "other"),
    torch.special.xlog1py: ("input", "other"),
    torch.linalg.inv: ("A",),
    torch.linalg.diagonal: ("A",),
    torch.linalg.vecdot: ("x", "y"),
    torch.max: ("input", "other"),
    torch.min: ("input", "other"),
    torch.where: ("condition", "input", "other"),
    torch.permute: ("input", "dims"),
    torch.linalg.solve_triangular: ("A", "B"),  # upper must be named
    **dict.fromkeys((torch.scatter, torch.Tensor.scatter, torch.Tensor.scatter_), ("input", "dim", "index", "src")),
    torch.tensor: ("data",),
    torch.as_tensor: ("data",),
    torch.asarray: ("obj",),
    torch.Tensor.new_tensor: ("input", "data"),
    torch.Tensor.to: ("input",),  # its first position is the type or the device
}


def with_positions(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Move the arguments that an operation cannot do without to their positions; what may be left out stays named."""
    options, placed = dict(kwargs), list(args)
    for name in _required(func)[len(args) :] if options else ():
        if name == "input" and "self" in options:
            name = "self"  # as torch calls a first operand that may be a number
        if name not in options:
            break
        placed.append(options.pop(name))
    return tuple(placed), options


@lru_cache(maxsize=4096)
def _required(func: Callable[..., Any]) -> tuple[str, ...]:
    if func in _OPERANDS:
        return _OPERANDS[func]
    stand_in = get_testing_overrides().get(func)
    if stand_in is None:
        return ("input",)
    given = inspect.signature(stand_in).parameters.values()
    positional = [each for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]
    names = ["input" if each.name == "self" else each.name for each in positional if each.default is each.empty]
    return tuple(names)
