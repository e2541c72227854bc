"""Custom functions of autograd: a run that is followed computes their forward, whose operations it meets one by one.

What such a function says of its gradient is of no use here: a held run keeps the factors of the operations, and the
gradient that spiking networks learn by is that of another function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ClassMethodDescriptorType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, FunctionCtx, _is_setup_context_defined, _SingleLevelFunction
from torch.overrides import _get_current_function_mode

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.increments.increments import Increments
from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.operations.operands import carries, for_each_tensor, operands
from unrolled.user_models.replaced_attributes import replaced_attributes
from unrolled.user_models.this_thread import ONE_THREAD

__all__ = ["custom_functions_followed"]

_APPLIES: Any = Function if isinstance(vars(Function)["apply"], ClassMethodDescriptorType) else _SingleLevelFunction
"""The class that gets a stand-in for ``apply``. In torch 2.13 Function.apply is Python and calls that of its base, also
where a model keeps it (``swish = Swish.apply``). In 2.15 it is compiled: what a model keeps is refused."""


@contextmanager
def custom_functions_followed() -> Iterator[None]:
    """Let custom functions compute their forward where their operations are followed, until the end of the block.

    Elsewhere a function is applied as before. One thread at a time is in such a block, which replaces it for all.
    """

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        mode = _get_current_function_mode()
        if not cls.__module__.startswith("unrolled."):
            if isinstance(mode, HeldForward):
                return _held(mode, cls, args, kwargs)
            if isinstance(mode, Increments):
                return _incremented(mode, cls, args, kwargs)
        return super(_APPLIES, cls).apply(*args, **kwargs)

    with ONE_THREAD, replaced_attributes([(_APPLIES, "apply", classmethod(apply))]):
        yield


def _forward(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the forward of a function with or without ``setup_context``."""
    context: Any = FunctionCtx()
    context.needs_input_grad = tuple(map(carries, args))
    first = () if _is_setup_context_defined(function.setup_context) else (context,)
    return function.forward(*first, *args, **kwargs)


def _incremented(mode: Increments, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the forward on increments; a result that they do not reach is refused."""
    result = _forward(function, args, kwargs)
    lost = (each for each in operands([result]) if each not in mode.points and each not in mode.numbers)
    if any(each in mode.points for each in operands(args)) and any(each.is_floating_point() for each in lost):
        raise UnsupportedOperationError(
            f"the custom autograd function {function.__name__} does not compute its result by operations of torch"
        )
    return result


def _held(mode: HeldForward, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the forward; an output that is made of a result whose value went elsewhere is refused."""
    result = _forward(function, args, kwargs)
    if not any(map(carries, operands(args))):
        return result
    message = (
        f"the model uses the custom autograd function {function.__name__}, whose value cannot be followed; compute it "
        "with torch operations while it is explained, or explain a part of the model"
    )

    def followed(each: Tensor) -> Tensor:
        unknown = mode.rows.origin(each).kind in ("constant", "argument", "answer")
        lost = not carries(each) and unknown  # as where a kernel writes it
        return without_rule(each, message) if lost else each

    with torch._C.DisableTorchFunction():
        return for_each_tensor(result, followed)
