"""What a whole-sequence kernel is, and how autograd meets one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from unrolled.kernels.cuda_graphs import Pass, current_graph_cache

__all__ = ["SequenceKernel", "differentiate_plain", "only_plain_serves", "run_kernel", "stretches"]

CACHED = 1 << 15
"""How many numbers of one slope are worked on at once: a slope's dozen of temporaries then stay in a core's cache."""


class SequenceKernel(ABC):
    """A recurrence over a whole sequence with a backward pass of its own.

    Products of the inputs are taken outside: they are ordinary operations, one product each way.
    """

    @property
    def identity(self) -> Hashable:
        """What tells it from kernels that do other work; None where a pass leaves more behind than it returns."""
        return None

    @abstractmethod
    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step, in differentiable operations: the judge, and what is differentiated twice.

        Args:
            *tensors: what the states depend on.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state).
        """

    @abstractmethod
    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run fast; nothing is recorded.

        Args:
            *tensors: what the states depend on.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state), and what the backward pass wants to see again.
        """

    @abstractmethod
    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Pull a gradient back.

        Args:
            gradient: of s_0 … s_T, shape (time + 1, batch, state); not to be changed.
            tensors: what :meth:`forward` was given.
            states: s_0 … s_T.
            kept: what :meth:`forward` kept; not to be changed, for there may be a second pass.

        Returns:
            The gradient of each tensor, None where there is none.
        """


def run_kernel(kernel: SequenceKernel, *tensors: Tensor | None) -> Tensor:
    """Run a kernel under autograd, and the plain steps where only they serve.

    Args:
        kernel: the kernel.
        *tensors: what the states depend on; None for what does not exist.

    Returns:
        s_0 … s_T, shape (time + 1, batch, state).
    """
    if only_plain_serves(tensors):
        return kernel.plain(*tensors)
    return _Run.apply(kernel, *tensors)


def only_plain_serves(tensors: Sequence[Tensor | None]) -> bool:
    """Tell whether a recurrence must run in plain operations: for mixed precision, or more than a gradient.

    Args:
        tensors: what the recurrence depends on; None for what does not exist.

    Returns:
        Whether autocast, forward-mode differentiation or another transform of torch.func is at work.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    # torch has no public name for the question that every autograd.Function asks when it is applied
    if torch.is_autocast_enabled(given[0].device.type) or torch._C._are_functorch_transforms_active():
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in given)


def differentiate_plain(
    plain: Callable[..., Any], tensors: Sequence[Tensor | None], gradients: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """Pull a gradient back through plain operations, so that it can be differentiated again.

    Args:
        plain: the recurrence.
        tensors: what it is called with; None for what does not exist.
        gradients: of what it returns.

    Returns:
        The gradient of each tensor, None where there is none.
    """
    # views: one of these tensors may have been computed from another, which is not to be counted twice
    given = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
    wanted = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
    found = torch.autograd.grad(plain(*given), wanted, gradients, create_graph=True, allow_unused=True)
    by_tensor = dict(zip(map(id, wanted), found, strict=True))
    return tuple(by_tensor.get(id(tensor)) for tensor in given)


def stretches(time: int, step: int, most: int = 0) -> list[tuple[int, int]]:
    """Cut a sequence into stretches that a core's cache holds, the last one first.

    Args:
        time: how many steps there are.
        step: how many numbers the state has in a step.
        most: how many numbers a stretch may have, ``CACHED`` when left out.

    Returns:
        Where each begins and ends.
    """
    length = max(1, (most or CACHED) // max(1, step))
    return [(start, min(start + length, time)) for start in reversed(range(0, time, length))]


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: SequenceKernel, *tensors: Tensor | None) -> Tensor:
        # asked for here, since the way back runs in a thread of autograd's
        recordings = current_graph_cache()
        serves = recordings is not None and kernel.identity is not None and recordings.serve(tensors)
        ctx.recordings, ctx.kernel, ctx.count = recordings if serves else None, kernel, len(tensors)

        def run(*given: Tensor | None) -> tuple[Tensor, ...]:
            states, kept = kernel.forward(*given)
            return states, *kept

        found = _passed(ctx, "forward", run, tensors)
        ctx.save_for_backward(*tensors, *found)
        states: Tensor = found[0]
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, count, kernel = ctx.saved_tensors, ctx.count, ctx.kernel
        if torch.is_grad_enabled():
            return None, *differentiate_plain(kernel.plain, saved[:count], gradients)

        def run(gradient: Tensor, *given: Tensor) -> tuple[Tensor | None, ...]:
            return kernel.backward(gradient, given[:count], given[count], given[count + 1 :])

        return None, *_passed(ctx, "backward", run, (gradients[0], *saved))


def _passed(ctx: Any, way: str, run: Pass, tensors: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Do a pass, from its recording where there are to be some."""
    if ctx.recordings is None:
        return run(*tensors)
    return ctx.recordings.run((way, ctx.count, ctx.kernel.identity), run, *tensors)
