"""Python functions of torch, run so that a mode meets the operations that they are made of."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["parameters", "python_body"]


def _nothing_overridden(*_: object) -> bool:
    return False


def parameters(func: types.FunctionType) -> tuple[str, ...]:
    """Return the names of the parameters of a Python function."""
    return func.__code__.co_varnames[: func.__code__.co_argcount]


@lru_cache(maxsize=256)
def python_body(func: Callable[..., Any]) -> types.FunctionType | None:
    """Return a Python function of torch that does not ask the mode again, so that the mode meets its operations.

    None for any other function.
    """
    if not isinstance(func, types.FunctionType) or not func.__module__.startswith("torch."):
        return None
    if func.__qualname__.startswith("boolean_dispatch."):  # it chooses between two functions that ask the mode for it
        return None
    checks = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    scope = {**func.__globals__, **{name: _nothing_overridden for name in checks if name in func.__globals__}}
    body = types.FunctionType(func.__code__, scope, func.__name__, func.__defaults__, func.__closure__)
    body.__kwdefaults__ = func.__kwdefaults__
    return body
