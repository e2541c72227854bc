"""Products and sums with a constant in forward mode, without the constant's derivative.

Torch takes zeros for it and computes with them: the products of a linear layer twice over, and for a small operation
most of its time. The results are the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import TransformType, is_functorch_wrapped_tensor, peek_interpreter_stack
from torch.autograd.forward_ad import make_dual, unpack_dual
from torch.overrides import TorchFunctionMode

__all__ = ["ConstantOperands"]


class ConstantOperands(TorchFunctionMode):
    """Takes the derivative of a product or sum by its only operand that has one."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        if func in _BY_ONE_OPERAND and not kwargs and (len(args) < 3 or func is F.linear):  # the third may be a factor
            return _run(func, args)
        return func(*args, **(kwargs or {}))


def _run(operation: Callable[..., Tensor], operands: tuple[Any, ...]) -> Tensor:
    stack = peek_interpreter_stack()
    if stack is None or stack.key() != TransformType.Jvp:
        return operation(*operands)
    moving = {
        place: dual
        for place, each in enumerate(operands)
        # without a wrapper it is a constant, and that is cheaper to ask
        if isinstance(each, Tensor) and is_functorch_wrapped_tensor(each)
        if (dual := unpack_dual(each)).tangent is not None
    }
    if len(moving) != 1 or (operation in _QUOTIENTS and 0 not in moving):
        return operation(*operands)
    ((place, (primal, tangent)),) = moving.items()
    result = operation(*_with_operand(operands, place, primal))
    if operation in _SUMS or (operation is F.linear and place == 2):  # the bias
        return make_dual(result, _as(result, tangent))
    if operation in _DIFFERENCES:
        return make_dual(result, _as(result, -tangent if place else tangent))
    factors = operands[:2]  # without a bias
    return make_dual(result, operation(*_with_operand(factors, place, tangent)))


def _with_operand(operands: tuple[Any, ...], place: int, operand: Tensor) -> tuple[Any, ...]:
    return (*operands[:place], operand, *operands[place + 1 :])


def _as(result: Tensor, tangent: Tensor) -> Tensor:
    """Copy a derivative: a result that is changed in place changes its own."""
    return tangent.to(result.dtype).expand(result.shape).clone()


_PRODUCTS = frozenset(
    {
        *(torch.mul, Tensor.mul, torch.multiply, Tensor.multiply),
        *(torch.matmul, Tensor.matmul, torch.mm, Tensor.mm, torch.bmm, Tensor.bmm, F.linear),
    }
)
_QUOTIENTS = frozenset({torch.div, Tensor.div, torch.true_divide, Tensor.true_divide})
"""Products of their first operand with what is made of the second."""
_SUMS = frozenset({torch.add, Tensor.add})
_DIFFERENCES = frozenset({torch.sub, Tensor.sub})
_BY_ONE_OPERAND = _PRODUCTS | _QUOTIENTS | _SUMS | _DIFFERENCES
