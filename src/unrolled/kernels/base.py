"""Whole-sequence kernels as autograd functions, with differentiable reference steps wherever a kernel cannot run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from unrolled.kernels.cuda_graphs import Pass, current_graph_cache

__all__ = [
    "SequenceKernel",
    "differentiate_reference",
    "needs_reference",
    "needs_reference_gradient",
    "run_fused",
    "run_kernel",
    "time_chunks",
]

CACHE_CHUNK = 1 << 15
"""Numbers of one slope that are processed at once: the dozen temporaries of a slope then stay in a core's cache."""


class SequenceKernel(ABC):
    """A recurrence over a whole sequence with its own backward pass.

    Products of the inputs are not part of it: they are ordinary operations, one product in each direction.
    """

    @property
    def identity(self) -> Hashable:
        """Equal for kernels that do the same work; None if a pass has results other than those it returns."""
        return None

    @abstractmethod
    def reference(self, *tensors: Any) -> Tensor:
        """Compute s_0 … s_T, shape (time + 1, batch, state), step by step in differentiable operations.

        This is the reference in tests, and what second derivatives are computed from.
        """

    @abstractmethod
    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute s_0 … s_T without autograd; return them and the tensors that the backward pass needs."""

    @abstractmethod
    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, saved: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Compute the gradient of each of ``tensors`` from the gradient of s_0 … s_T.

        ``gradient`` and ``saved`` must not be changed, because there may be a second backward pass.
        """


def run_kernel(kernel: SequenceKernel, *tensors: Tensor | None) -> Tensor:
    """Run a kernel under autograd, or its reference steps where the kernel cannot run.

    Args:
        kernel: The recurrence.
        *tensors: All that the states depend on; None for an optional tensor that does not exist.

    Returns:
        s_0 … s_T, shape (time + 1, batch, state).
    """
    if needs_reference(tensors):
        return kernel.reference(*tensors)
    return _KernelFunction.apply(kernel, *tensors)


def run_fused(
    fused: Callable[..., tuple[Tensor, ...]], reference: Callable[..., tuple[Tensor, ...]], *tensors: Tensor | None
) -> tuple[Tensor, ...]:
    """Run a function of torch that has a fast gradient but no second derivative.

    ``reference`` computes the same. It gives the gradient where that is differentiated again, and runs where ``fused``
    cannot.
    """
    if needs_reference(tensors):
        return reference(*tensors)
    if not torch.is_grad_enabled():
        return fused(*tensors)
    return _FusedFunction.apply(fused, reference, *tensors)


def needs_reference(tensors: Sequence[Tensor | None]) -> bool:
    """Return whether autocast, tracing, forward-mode differentiation or another transform of torch.func is active."""
    is_exporting = getattr(torch.compiler, "is_exporting", bool)  # later than torch 2.4
    if torch.jit.is_tracing() or is_exporting():  # type: ignore[attr-defined]  # it is documented, and not listed
        return True
    given = [tensor for tensor in tensors if tensor is not None]
    device = given[0].device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return True
    # torch has no public function for this question, which every autograd.Function asks when it is applied
    if torch._C._are_functorch_transforms_active():
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in given)


def needs_reference_gradient(gradient: Tensor) -> bool:
    """Return whether a gradient will be differentiated again, or stands for a batch of gradients (vectorize=True)."""
    batched = torch._C._are_functorch_transforms_active() or torch._C._functorch.is_legacy_batchedtensor(gradient)
    return torch.is_grad_enabled() or batched


def differentiate_reference(
    reference: Callable[..., Any], tensors: Sequence[Tensor | None], gradients: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of ``reference(*tensors)`` so that they can be differentiated again."""
    with torch.enable_grad():
        # views: one of these tensors may have been computed from another, which must not be counted twice
        given = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
        wanted = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
        found = torch.autograd.grad(reference(*given), wanted, gradients, create_graph=True, allow_unused=True)
    by_tensor = dict(zip(map(id, wanted), found, strict=True))
    return tuple(by_tensor.get(id(tensor)) for tensor in given)


def time_chunks(time: int, step: int, most: int = 0) -> list[tuple[int, int]]:
    """Cut a sequence into chunks that fit into a core's cache, the last chunk first.

    Args:
        time: Number of steps.
        step: Number of elements of the state in one step.
        most: Number of elements in a chunk, ``CACHE_CHUNK`` when omitted.

    Returns:
        The start and the end of each chunk.
    """
    length = max(1, (most or CACHE_CHUNK) // max(1, step))
    return [(start, min(start + length, time)) for start in reversed(range(0, time, length))]


class _KernelFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: SequenceKernel, *tensors: Tensor | None) -> Tensor:
        # looked up here, because the backward pass runs in a thread of autograd
        cache = current_graph_cache()
        usable = cache is not None and kernel.identity is not None and cache.accepts(tensors)
        ctx.graph_cache, ctx.kernel, ctx.count = cache if usable else None, kernel, len(tensors)

        def run(*given: Tensor | None) -> tuple[Tensor, ...]:
            states, saved = kernel.forward(*given)
            return states, *saved

        found = _run_pass(ctx, "forward", run, tensors)
        ctx.save_for_backward(*tensors, *found)
        states: Tensor = found[0]
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, count, kernel = ctx.saved_tensors, ctx.count, ctx.kernel
        if needs_reference_gradient(gradients[0]):
            return None, *differentiate_reference(kernel.reference, saved[:count], gradients)

        def run(gradient: Tensor, *given: Tensor) -> tuple[Tensor | None, ...]:
            return kernel.backward(gradient, given[:count], given[count], given[count + 1 :])

        return None, *_run_pass(ctx, "backward", run, (gradients[0], *saved))


def _run_pass(ctx: Any, direction: str, run: Pass, tensors: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Run a pass, from its CUDA graph if graphs are in use."""
    if ctx.graph_cache is None:
        return run(*tensors)
    return ctx.graph_cache.run((direction, ctx.count, ctx.kernel.identity), run, *tensors)


class _FusedFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fused: Pass, reference: Pass, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        leaves = [t if t is None else t.detach().requires_grad_(t.requires_grad) for t in tensors]
        with torch.enable_grad():
            found = fused(*leaves)
        ctx.reference, ctx.leaves, ctx.found = reference, leaves, found  # leaves share the storage of the tensors
        ctx.save_for_backward(*tensors)
        return tuple(None if one is None else one.detach() for one in found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return None, None, *differentiate_reference(ctx.reference, ctx.saved_tensors, gradients)
        wants = [leaf is not None and leaf.requires_grad for leaf in ctx.leaves]
        wanted = [leaf for leaf, wants_gradient in zip(ctx.leaves, wants, strict=True) if wants_gradient]
        found = iter(torch.autograd.grad(ctx.found, wanted, gradients, retain_graph=True, allow_unused=True))
        return None, None, *(next(found) if wants_gradient else None for wants_gradient in wants)
