"""Scripted functions: a mode meets a call of one as one operation, and runs the Python function that was scripted.

``torch.jit`` runs a scripted function outside Python. Its operations ask no mode, so autograd would record them as they
are, and the run would not be linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function
from torch.utils._pytree import tree_leaves

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import detached, for_each_tensor, operands
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["python_function", "scripts_as_operations"]

_KINDS: tuple[Any, ...] = (torch._C.ScriptFunction, torch._C.ScriptMethod)
"""What ``torch.jit.script`` and ``torch.jit.trace`` make of functions and of methods."""
_EQUAL = {torch.float64: 1e-9}
"""How far a number that the Python function gives may be from the script's, relative to it; 1e-4 in other types.

It is close, since both are one function and a trace may be of another branch.
"""


@contextmanager
def scripts_as_operations() -> Iterator[None]:
    """Make each call of a scripted function one operation of a mode, until the end of the block.

    A thread without a mode calls the function as before.
    """
    with replaced_attributes((kind, "__call__", _stand_in(kind.__call__)) for kind in _KINDS):
        yield


def _stand_in(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call of a scripted function that a mode of this thread meets as one operation."""

    def scripted_function(script: Any, *args: Any, **kwargs: Any) -> Any:
        return call(script, *args, **kwargs)

    def asked(script: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch._C._len_torch_function_stack():
            return call(script, *args, **kwargs)
        return handle_torch_function(scripted_function, (), script, *args, **kwargs)

    return asked


@rule("scripted_function")
def scripted(call: HeldCall) -> Any:
    """Run the Python function that was scripted; where none gives the same, an output made of the result is refused."""
    script, *args = call.args
    with torch.no_grad():
        expected = call.function(script, *_copied(args), **_copied(call.kwargs))
    original = python_function(script)
    if original is not None:
        with call.mode:
            result = original(*args, **call.kwargs)
        if _are_equal(operands([result]), operands([expected])):
            return result
    message = (
        f"the model calls {script.name}, which torch.jit.script or torch.jit.trace made, and no rule can meet its "
        "operations; let the model call the Python function that it was made of"
    )
    if any(isinstance(each, float | complex) for each in tree_leaves(expected)):
        raise UnsupportedOperationError(message)  # Python's numbers ask no rule
    return for_each_tensor(expected, lambda each: without_rule(each, message))


def python_function(script: Any) -> Callable[..., Any] | None:
    """Return the Python function that a scripted one was made of; None where torch keeps none."""
    original: Callable[..., Any] | None = getattr(script, "_torchdynamo_inline", None)  # kept for torch.compile
    return original


def _copied(value: Any) -> Any:
    return for_each_tensor(detached(value), Tensor.clone)


def _are_equal(one: list[Tensor], other: list[Tensor]) -> bool:
    """Tell whether results are equal up to rounding: a trace keeps the branch that it was made of."""
    shapes = [[each.shape for each in every] for every in (one, other)]
    if shapes[0] != shapes[1]:
        return False
    pairs = [(a.detach(), b.to(a.dtype), _EQUAL.get(a.dtype, 1e-4)) for a, b in zip(one, other, strict=True)]
    return all(torch.allclose(a, b, rtol=close, atol=0.01 * close, equal_nan=True) for a, b, close in pairs)
