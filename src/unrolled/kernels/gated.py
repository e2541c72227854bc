"""Kernels of gated cells: z_t = x_t + (a product of h_{t-1}), s_t = update(z_t, s_{t-1}).

Four products and three updates make ten cells. The forward loop writes into preallocated buffers. The backward pass
computes what it can for many steps at once, and its loop propagates only δs. The cells have the same equations in
``elementwise`` and ``slopes`` or in ``step``; the contract of a cell holds the two versions together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, time_chunks

__all__ = [
    "Backward",
    "ElementwiseUpdate",
    "Forward",
    "GatedKernel",
    "Gradients",
    "Multiply",
    "RecurrentProduct",
    "ResetBeforeKernel",
    "Step",
]


Gradients = tuple[Tensor | None, ...]
Multiply = Callable[[int, Tensor, Tensor], None]
"""Computes offset + product of step t, called with t, the offset and the tensor to write to."""
Step = Callable[[int], None]
"""Computes step t in place."""
Forward = tuple[Sequence[Tensor], Sequence[Tensor], Step, tuple[Tensor, ...]]
"""For every step the tensor added to the product and the tensor that receives the sum; the step; what it saves."""
Backward = tuple[Callable[[int, int], None], Step, Callable[[], Gradients]]
"""Computes the slopes of a chunk of steps; goes from δs_t to δz_t and to the carried part of δs_{t-1}; computes, after
the loop, the gradients of ``from_input`` and of the update's weights, when it may overwrite δz."""


class RecurrentProduct(ABC):
    """The contribution of the state to the pre-activations. It may own the first part of the state."""

    saved_count: ClassVar[int]
    """Number of tensors that the forward pass saves for the backward pass."""

    @abstractmethod
    def reference(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute step t in differentiable operations.

        ``state`` is s_{t-1}, shape (batch, state). The result is the product, shape (batch, gates), and the part of s_t
        that the product owns.
        """

    @abstractmethod
    def forward(self, states: Tensor, weights: Sequence[Tensor]) -> tuple[Multiply, tuple[Tensor, ...]]:
        """Prepare the forward pass over s_0 … s_T, which is still being written; return the step and what it saves."""

    @abstractmethod
    def backward(
        self, states: Tensor, weights: Sequence[Tensor], saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor
    ) -> tuple[Step, Callable[[], Gradients]]:
        """Prepare the backward pass.

        ``grad_states``, δs_0 … δs_T, is accumulated into; ``grad_z``, shape (time, batch, gates), is written by the
        update. The results are the step from δz_t to δs_{t-1}, and the function that computes the gradients of the
        weights after the loop.
        """


class ElementwiseUpdate(ABC):
    """The element-wise part of a cell: from the pre-activations and the last state to the next state."""

    saved_count: ClassVar[int]
    """Number of tensors that the forward pass saves for the backward pass."""
    weight_count: ClassVar[int] = 0
    """Number of weights that belong to the update and not to the product."""

    @abstractmethod
    def reference(self, x: Tensor, product: Tensor, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute the parts of s_t in differentiable operations.

        ``x`` and ``product`` are the contributions of the input and of the state, shape (batch, gates).
        """

    @abstractmethod
    def forward(self, from_input: Tensor, states: Tensor, weights: Sequence[Tensor]) -> Forward:
        """Prepare the forward pass."""

    @abstractmethod
    def backward(self, states: Tensor, saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor) -> Backward:
        """Prepare the backward pass."""


class GatedKernel(SequenceKernel):
    """A product and an update over a whole sequence.

    The kernel's tensors are the contributions of the inputs, s_0, the weights of the update and those of the product.
    """

    def __init__(self, product: RecurrentProduct, update: ElementwiseUpdate) -> None:
        self.product, self.update = product, update

    @property
    def identity(self) -> Hashable:
        """The types and settings of the product and the update."""
        return tuple((type(each), *vars(each).values()) for each in (self.product, self.update))

    def reference(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        from_input, state, *weights = tensors
        own, weights = weights[: self.update.weight_count], weights[self.update.weight_count :]
        states = [state]
        for t, x in enumerate(from_input):
            product, memory = self.product.reference(t, states[-1], weights)
            states.append(torch.cat((*memory, *self.update.reference(x, product, states[-1], own)), dim=-1))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer."""
        from_input, state, *weights = tensors
        own, weights = weights[: self.update.weight_count], weights[self.update.weight_count :]
        states = state.new_empty(len(from_input) + 1, *state.shape)
        states[0] = state
        multiply, saved = self.product.forward(states, weights)
        offsets, sums, step, more = self.update.forward(from_input, states, own)
        for t in range(len(from_input)):
            multiply(t, offsets[t], sums[t])
            step(t)
        return states, (*saved, *more)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, saved: tuple[Tensor, ...]
    ) -> Gradients:
        """Propagate only δs through the loop."""
        from_input, state, *weights = tensors
        existing = [weight is not None for weight in weights[: self.update.weight_count]]
        weights, own = weights[self.update.weight_count :], self.product.saved_count
        grad_states, grad_z = gradient.clone(), torch.empty_like(from_input)
        multiply, product_gradients = self.product.backward(states, weights, saved[:own], grad_states, grad_z)
        slopes, step, update_gradients = self.update.backward(states, saved[own:], grad_states, grad_z)
        for start, stop in time_chunks(len(from_input), state.numel()):
            slopes(start, stop)
            for t in range(stop - 1, start - 1, -1):
                step(t)
                multiply(t)
        of_weights = product_gradients()  # of δz, before the update overwrites it with the gradient of from_input
        of_input, *of_own = update_gradients()
        found = (one if exists else None for one, exists in zip(of_own, existing, strict=True))
        return of_input, grad_states[0], *found, *of_weights


class ResetBeforeKernel(SequenceKernel):
    """A GRU as first published. Its tensors are [x^r, x^z, x^n], h_0 and [U_r; U_z; U_n]."""

    @property
    def identity(self) -> Hashable:
        """The type, since the kernel has no settings."""
        return type(self)

    def reference(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        from_input, state, weight = tensors
        d, states = state.shape[1], [state]
        for x in from_input:
            h = states[-1]
            r, z = torch.sigmoid(x[:, : 2 * d] + linear(h, weight[: 2 * d])).chunk(2, dim=-1)
            n = torch.tanh(x[:, 2 * d :] + linear(r * h, weight[2 * d :]))
            states.append(h + z * (n - h))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; save [r, z, n] and u."""
        from_input, state, weight = tensors
        time, (batch, d) = len(from_input), state.shape
        states = state.new_empty(time + 1, batch, d)
        states[0] = state
        gates, reset_state = torch.empty_like(from_input), state.new_empty(time, batch, d)
        to_gates, to_candidate = weight[: 2 * d].T.contiguous(), weight[2 * d :].T.contiguous()
        for_gates, for_candidate = (part.unbind() for part in from_input.split((2 * d, d), dim=-1))
        both, n = (part.unbind() for part in gates.split((2 * d, d), dim=-1))
        r, z = (part.unbind() for part in gates[..., : 2 * d].split(d, dim=-1))
        h, u = states.unbind(), reset_state.unbind()
        for t in range(time):
            torch.addmm(for_gates[t], h[t], to_gates, out=both[t]).sigmoid_()
            torch.mul(r[t], h[t], out=u[t])
            torch.addmm(for_candidate[t], u[t], to_candidate, out=n[t]).tanh_()
            torch.lerp(h[t], n[t], z[t], out=h[t + 1])
        return states, (gates, reset_state)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, saved: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Propagate only δh through the loop."""
        from_input, state, weight = tensors
        gates, reset_state = saved
        d = state.shape[1]
        grad_states, grad_z, grad_u = gradient.clone(), torch.empty_like(from_input), torch.empty_like(reset_state)
        of_gates, of_candidate = weight.split((2 * d, d))
        to_reset, to_rest = (part.unbind() for part in grad_z.split((d, 2 * d), dim=-1))
        to_both, to_n = (part.unbind() for part in grad_z.split((2 * d, d), dim=-1))
        to_rest = [part.unflatten(-1, (2, d)) for part in to_rest]
        to_h, to_u, reset = grad_states.unbind(), grad_u.unbind(), gates[..., :d].unbind()
        for start, stop in time_chunks(len(from_input), state.numel()):
            r, z, n = gates[start:stop].chunk(3, dim=-1)
            before = states[start:stop]
            local = torch.stack(((n - before) * (z - z * z), z * (1 - n * n)), dim=-2).unbind()
            of_reset, remains = (before * (r - r * r)).unbind(), (1 - z).unbind()
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                torch.mul(local[k], to_h[t + 1].unsqueeze(1), out=to_rest[t])
                torch.mm(to_n[t], of_candidate, out=to_u[t])
                torch.mul(of_reset[k], to_u[t], out=to_reset[t])
                to_h[t].addcmul_(remains[k], to_h[t + 1]).addcmul_(reset[t], to_u[t]).addmm_(to_both[t], of_gates)
        flat = grad_z.flatten(0, 1).T
        grad_weight = torch.empty_like(weight)
        torch.mm(flat[: 2 * d], states[:-1].flatten(0, 1), out=grad_weight[: 2 * d])
        torch.mm(flat[2 * d :], reset_state.flatten(0, 1), out=grad_weight[2 * d :])
        return grad_z, grad_states[0], grad_weight
