"""The derivative of a step that a user wrote: what it detaches moves as the rest does, as by increments.

Numbers that it gives Python are lost to every derivative. They are noted by the place in its code that takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from unrolled.forward_mode.written_operations import WrittenOperations, with_written_operations
from unrolled.held_forward.operations.operands_read import copied_data
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.operations.positional_operands import with_positions
from unrolled.held_forward.operations.python_values import FROM_PYTHON, TAKES_OUT, TO_NUMPY, taken_out_error
from unrolled.held_forward.outside.taken_places import TakenPlaces

__all__ = ["with_all_derivatives"]


def with_all_derivatives(step: Callable[..., Tensor], taken: TakenPlaces) -> Callable[..., Tensor]:
    """Return a step whose derivatives are those of all that it computes by operations of torch.

    Args:
        step: The step.
        taken: Gets the places where the step gives Python numbers.
    """
    return with_written_operations(step, partial(_AllDerivatives, taken))


class _AllDerivatives(WrittenOperations):
    """Differentiates what a step detaches, or computes without gradients.

    Raises:
        UnsupportedOperationError: Where the step gives numpy numbers that are differentiated: they lie in no memory.
    """

    def __init__(self, taken: TakenPlaces) -> None:
        super().__init__()
        self.taken = taken
        self.by_reverse_mode = torch.is_grad_enabled()

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False), torch.enable_grad():
                return self.__torch_function__(func, types, args, kwargs)
        operation = name_of(func)
        if operation.name == "detach":
            return args[0] if operation.in_place else args[0].view_as(args[0])
        if operation.name in FROM_PYTHON:
            args, kwargs = with_positions(func, args, kwargs or {})
            made, data = func(*args, **kwargs), copied_data(operation, args)
            return data.to(made).clone() if isinstance(data, Tensor) else made
        if func is torch._C._set_grad_enabled and self.by_reverse_mode:  # torch.no_grad(); forward mode goes through
            return None
        if operation.name in TAKES_OUT:
            if not is_functorch_wrapped_tensor(args[0]):
                self.taken.note_other()
            elif operation.name in TO_NUMPY:
                raise taken_out_error(operation.name)
            else:
                self.taken.note(operation.name)
                args = (args[0].detach(), *args[1:])  # as the step may have detached it, or torch warns
        return super().__torch_function__(func, types, args, kwargs)
