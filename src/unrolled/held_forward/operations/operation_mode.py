"""A mode of torch that meets every operation of a run, in this thread, on parameters that require no gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from unrolled.held_forward.operations.control_flow import as_python
from unrolled.held_forward.operations.operands import has_flags, without_flags
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.operations.positional_operands import with_positions

__all__ = ["OperationMode", "object_of"]


_OF_THE_OBJECT = ("get ", "set ", "__hash__", "requires_grad")
"""How operations are called that read or change what the first operand has as an object, such as its ``grad``."""


class OperationMode(TorchFunctionMode):
    """Meets every operation by its method :meth:`run_operation`, with operands that a call names at their positions.

    No parameter among the operands requires a gradient, though the model's own parameters do.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is Tensor.__deepcopy__ and torch.is_grad_enabled():  # which refuses a result that autograd follows
            func, args = Tensor.clone, args[:1]
        if (control := as_python(func)) is not None:
            with self:
                return control(*args, **(kwargs or {}))
        given, options = with_positions(func, args, kwargs or {})
        return self.run_operation(func, *self.without_gradients(func, given, options))

    def without_gradients(
        self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return operands of which no parameter requires a gradient."""
        if has_flags(args) or (options and has_flags(options.values())):
            own = object_of(func, args)
            args, options = (*own, *without_flags(args[len(own) :])), without_flags(options)
        return args, options

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run one operation; here as it is."""
        return func(*args, **options)


def object_of(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the first operand where an operation reads or changes what it has as an object, else nothing."""
    return args[:1] if name_of(func).name.startswith(_OF_THE_OBJECT) else ()
