"""Hand a sequence to a function of torch's that has a fast gradient but no second one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.kernels.base import differentiate_plain, only_plain_serves

__all__ = ["run_fused"]

Run = Callable[..., tuple[Tensor, ...]]


def run_fused(fast: Run, plain: Run, *tensors: Tensor | None) -> tuple[Tensor, ...]:
    """Run one of two functions that compute the same.

    Args:
        fast: is run, and gives the gradient.
        plain: gives the gradient where it is to be differentiated again, and is run where ``fast`` cannot be.
        *tensors: what both are called with; None for what does not exist.

    Returns:
        What they return.
    """
    if only_plain_serves(tensors):
        return plain(*tensors)
    return _Delegated.apply(fast, plain, *tensors)


class _Delegated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fast: Run, plain: Run, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        leaves = [t if t is None else t.detach().requires_grad_(t.requires_grad) for t in tensors]
        with torch.enable_grad():
            found = fast(*leaves)
        ctx.plain, ctx.leaves, ctx.found = plain, leaves, found  # leaves share what the tensors hold
        ctx.save_for_backward(*tensors)
        return tuple(one.detach() for one in found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return None, None, *differentiate_plain(ctx.plain, ctx.saved_tensors, gradients)
        wanted = [leaf for leaf in ctx.leaves if leaf is not None and leaf.requires_grad]
        found = iter(torch.autograd.grad(ctx.found, wanted, gradients, retain_graph=True, allow_unused=True))
        wants = (leaf is not None and leaf.requires_grad for leaf in ctx.leaves)
        return None, None, *(next(found) if wanted else None for wanted in wants)
