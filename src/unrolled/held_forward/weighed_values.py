"""Attention with held weights as a linear node of a graph that can be differentiated twice.

The derivative of the kernel that torch chooses for attention has no derivative itself, and what a network reads behind
attention is found by two. The weights are not kept: the kernel computes them again, as it does for a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["WeighedValues"]


class WeighedValues(torch.autograd.Function):
    """A sum of values with held weights, or its transpose: each is the derivative of the other."""

    @staticmethod
    def forward(
        ctx: Any, given: Tensor, weigh: Callable[[Tensor], Tensor], values: Tensor, transposed: bool = False
    ) -> Tensor:
        """Weigh what is given, or take a covector of the weighed back to the values.

        Args:
            ctx: What autograd keeps.
            given: What is weighed, of the form of ``values``, or the covector.
            weigh: The operation with all its other operands held.
            values: Values of the operation, without a graph.
            transposed: Whether the transpose is computed.
        """
        ctx.weigh, ctx.values, ctx.transposed = weigh, values, transposed
        if not transposed:
            return weigh(given)
        with torch.enable_grad():
            leaf = values.detach().requires_grad_()
            (covector,) = torch.autograd.grad(weigh(leaf), leaf, given)
        return covector

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the other of both."""
        return WeighedValues.apply(gradients[0], ctx.weigh, ctx.values, not ctx.transposed), None, None, None
