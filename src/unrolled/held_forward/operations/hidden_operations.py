"""Blocks of a model in which torch hides what a tensor is made of."""

from __future__ import annotations

import torch

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operation_names import Operation

__all__ = ["refuse_inference_mode", "refuse_transforms"]


def refuse_transforms(operation: Operation) -> None:
    """Refuse an operation inside a transform of torch.func."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise UnsupportedOperationError(
            f"the model computes {operation.name} inside a transform of torch.func (such as torch.func.grad, or a "
            "torch.vmap that draws random numbers), which hides what it is made of; write that part without it"
        )


def refuse_inference_mode(operation: Operation) -> None:
    """Refuse an operation on value in a block of which autograd records nothing."""
    if torch.is_inference_mode_enabled():
        raise UnsupportedOperationError(
            f"the model computes {operation.name} in torch.inference_mode, where no gradient tells what it is made of; "
            "use torch.no_grad there, or none"
        )
