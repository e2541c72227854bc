"""Custom functions of autograd: a held run computes their forward, whose operations it follows one by one.

What such a function says of its gradient is of no use to a held run, which keeps the factors of the operations.
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

from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.operands import carries, for_each_tensor, operands
from unrolled.held_forward.replaced_attributes import replaced_attributes

__all__ = ["custom_functions_followed"]

_APPLIES: Any = Function if isinstance(vars(Function)["apply"], ClassMethodDescriptorType) else _SingleLevelFunction
"""The class that gets a stand-in for ``apply``. In torch 2.13 Function.apply is Python and calls that of its base, also
where a model keeps it (``swish = Swish.apply``). In 2.15 it is compiled: what a model keeps is refused."""


@contextmanager
def custom_functions_followed() -> Iterator[None]:
    """Let custom functions compute their forward where a held run meets operations, until the end of the block.

    Without a held run a function is applied as before.
    """

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        mode = _get_current_function_mode()
        if not isinstance(mode, HeldForward) or cls.__module__.startswith("unrolled."):
            return super(_APPLIES, cls).apply(*args, **kwargs)
        return _forward(mode, cls, args, kwargs)

    with replaced_attributes([(_APPLIES, "apply", classmethod(apply))]):
        yield


def _forward(mode: HeldForward, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the forward; an output that is made of a result whose value went elsewhere is refused."""
    context: Any = FunctionCtx()
    context.needs_input_grad = tuple(map(carries, args))
    first = () if _is_setup_context_defined(function.setup_context) else (context,)
    result = function.forward(*first, *args, **kwargs)
    if not any(map(carries, operands(args))):
        return result
    message = (
        f"the model uses the custom autograd function {function.__name__}, whose value cannot be followed; compute it "
        "with torch operations while it is explained, or explain a part of the model"
    )

    def followed(each: Tensor) -> Tensor:
        lost = not carries(each) and mode.rows.origin(each)[0] == "constant"  # as where a kernel writes it
        return without_rule(each, message) if lost else each

    with torch._C.DisableTorchFunction():
        return for_each_tensor(result, followed)
