"""One name for an operation, however it was called: ``torch.add``, ``Tensor.add_`` and ``__radd__`` are all ``add``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

__all__ = ["Operation", "name_of", "plain_form", "plain_name"]

_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul", "pow": "pow"}
_CONVERSIONS = frozenset("float int bool index complex array len hash format contains".split())
_SYNONYMS = {
    "concat": "cat",
    "concatenate": "cat",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "absolute": "abs",
    "negative": "neg",
    "clip": "clamp",
    "moveaxis": "movedim",
    "swapdims": "transpose",
    "swapaxes": "transpose",
    "special_expit": "sigmoid",
    "special_gammaln": "lgamma",
    "special_psi": "digamma",
    "fix": "trunc",
    **{f"arc{name}": f"a{name}" for name in "cos sin tan tan2 cosh sinh tanh".split()},
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "get T": "t",
    "get mT": "adjoint",
    "get H": "adjoint",
    "get mH": "adjoint",
    "get data": "detach",
    "get real": "real",
    "get imag": "imag",
}


@dataclass(frozen=True)
class Operation:
    """The name of an operation and how it was called."""

    name: str
    in_place: bool = False
    reflected: bool = False
    """Whether the operands come in reverse order, as in ``__rsub__``."""

    @property
    def writes(self) -> bool:
        """Whether the first operand holds the result then, or a part of it."""
        return self.in_place or self.name == "setitem"


def plain_name(name: str) -> str:
    """Return the one name of an operation that torch has by several."""
    bare = name.removeprefix("special_")
    return _SYNONYMS.get(name, bare if hasattr(torch, bare) else name)


@lru_cache(maxsize=4096)
def name_of(func: Callable[..., Any]) -> Operation:
    """Name an operation."""
    name = getattr(func, "__name__", str(func))
    if name in ("__get__", "__set__"):
        attribute = getattr(getattr(func, "__self__", None), "__name__", "")
        return Operation(plain_name(f"{name[2:5]} {attribute}"))
    if name.startswith("__") and name.endswith("__"):
        bare = name[2:-2]
        if bare[:1] == "i" and bare[1:] in _ARITHMETIC:
            return Operation(_ARITHMETIC[bare[1:]], in_place=True)
        if bare[:1] == "r" and bare[1:] in _ARITHMETIC:
            return Operation(_ARITHMETIC[bare[1:]], reflected=True)
        return Operation(_ARITHMETIC.get(bare, name if bare in _CONVERSIONS else bare))
    if name == "rsub":
        return Operation("sub", reflected=True)
    in_place = name.endswith("_") and not name.startswith("_")
    bare = name[:-1] if in_place else name
    return Operation(plain_name(bare), in_place)


_PLAIN = {name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "matmul", "pow")}


def plain_form(func: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
    """Return the operation as a function that neither works in place nor reflects its operands."""
    if operation.name in _PLAIN:
        return _PLAIN[operation.name]
    if not operation.in_place:
        return func
    for home in (torch, Tensor, torch.nn.functional, torch._C._nn):
        if (plain := getattr(home, operation.name, None)) is not None:
            return plain
    return func
