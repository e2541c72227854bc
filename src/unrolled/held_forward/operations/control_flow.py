"""Control flow of torch as Python: a branch, a loop, a scan or a map runs its functions one step at a time.

``torch.cond`` and its like give their functions to torch, where no mode meets what these compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["as_python"]


def _branch(condition: Any, first: Callable[..., Any], second: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Call one of two functions, as ``torch.cond`` does."""
    return (first if condition else second)(*operands)


def _loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], others: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Call a function as long as another one says so, as ``while_loop`` does."""
    carried = tuple(carried)
    while condition(*carried, *others):
        carried = tuple(body(*carried, *others))
    return carried


def _scan(
    step: Callable[..., Sequence[Tensor]], initial: Sequence[Tensor], read: Sequence[Tensor], others: Sequence[Any] = ()
) -> list[Tensor]:
    """Carry states over the first axis of what is read, as ``scan`` does, and stack what each step gives beside."""
    carried, given = list(initial), []
    for place in range(len(read[0])):
        result = step(*carried, *(each[place] for each in read), *others)
        carried = list(result[: len(carried)])
        given.append(result[len(carried) :])
    return [*carried, *map(torch.stack, zip(*given, strict=True))]


def _map(function: Callable[..., Any], read: Sequence[Tensor], others: Sequence[Any] = ()) -> Any:
    """Call a function for each entry of the first axis, as ``map`` does, and stack the results."""
    given = (function(*(each[place] for each in read), *others) for place in range(len(read[0])))
    results, forms = zip(*map(tree_flatten, given), strict=True)
    return tree_unflatten([torch.stack(each) for each in zip(*results, strict=True)], forms[0])


_PYTHON: dict[str, Callable[..., Any]] = {"cond": _branch, "while_loop": _loop, "scan": _scan, "map_impl": _map}


def as_python(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a Python function in place of an operator that calls functions; None for any other operation."""
    return _PYTHON.get(func.__name__) if isinstance(func, HigherOrderOperator) else None
