r"""Kernels of gated cells: z_t = x_t + (a product of h_{t-1}), s_t = update(z_t, s_{t-1}).

Four products and three updates make eight cells. The forward loop writes into preallocated buffers. The backward pass
computes what it can for many steps at once, and its loop propagates only δs. The cells have the same equations in
`combine` and `slopes` or in `step`; the contract of a cell holds the two versions together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from unrolled.kernels.base import SequenceKernel, time_chunks

__all__ = [
    "Backward",
    "ElementwiseUpdate",
    "Forward",
    "GatedKernel",
    "Gradients",
    "Multiply",
    "RecurrentProduct",
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
