r"""The kernel of cells that are a product and gates: z_t = x_t + (a product of h_{t-1}), s_t = gates(z_t, s_{t-1}).

Four products and three kinds of gates make eight cells. The loop forward writes into buffers that are there from the
start; back, what can be known of many steps at once is computed for a stretch of them, and the loop carries δs alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from unrolled.kernels.base import SequenceKernel, stretches

__all__ = ["ElementwiseUpdate", "GatedKernel", "Gradients", "RecurrentProduct"]

Gradients = tuple[Tensor | None, ...]


class RecurrentProduct(ABC):
    """What the state contributes to the pre-activations. It may keep a part of the state to itself, the first."""

    keeps: ClassVar[int]
    """How many tensors it wants to see again."""

    @abstractmethod
    def plain(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute one step's in differentiable operations.

        Args:
            t: the step, from 0.
            state: s_{t-1}, shape (batch, state).
            weights: its weights; what the input contributes has one row a step.

        Returns:
            The product, shape (batch, gates), and its own part of s_t.
        """

    @abstractmethod
    def forward(
        self, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Callable[[int, Tensor, Tensor], None], tuple[Tensor, ...]]:
        """Get ready to run.

        Args:
            states: s_0 … s_T, shape (time + 1, batch, state), being written.
            weights: its weights.

        Returns:
            What takes a step, called with t, an offset and where their sum goes; and what is kept.
        """

    @abstractmethod
    def backward(
        self, states: Tensor, weights: Sequence[Tensor], kept: Sequence[Tensor], arrived: Tensor, by_z: Tensor
    ) -> tuple[Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back.

        Args:
            states: s_0 … s_T.
            weights: its weights.
            kept: what :meth:`forward` kept.
            arrived: δs_0 … δs_T, being added to.
            by_z: δz, shape (time, batch, gates), being written.

        Returns:
            What takes step t back, from δz_t to δs_{t-1}; and what gives the gradients of the weights at the end.
        """


class ElementwiseUpdate(ABC):
    """The point-wise part: from pre-activations and the last state to the next."""

    keeps: ClassVar[int]
    """How many tensors it wants to see again."""
    weights: ClassVar[int] = 0
    """How many weights are its own."""

    @abstractmethod
    def plain(self, x: Tensor, product: Tensor, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute one step's in differentiable operations.

        Args:
            x: what the input contributes, shape (batch, gates).
            product: what the state contributes, shape (batch, gates).
            state: s_{t-1}, shape (batch, state).
            weights: its own.

        Returns:
            The parts of s_t.
        """

    @abstractmethod
    def forward(
        self, by_input: Tensor, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Sequence[Tensor], Sequence[Tensor], Callable[[int], None], tuple[Tensor, ...]]:
        """Get ready to run.

        Args:
            by_input: what the inputs contribute, shape (time, batch, gates).
            states: s_0 … s_T, being written.
            weights: its own.

        Returns:
            For every step what is added to the product and where the sum goes; what takes a step; what is kept.
        """

    @abstractmethod
    def backward(
        self, states: Tensor, kept: Sequence[Tensor], arrived: Tensor, by_z: Tensor
    ) -> tuple[Callable[[int, int], None], Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back.

        Args:
            states: s_0 … s_T.
            kept: what :meth:`forward` kept.
            arrived: δs_0 … δs_T, being added to.
            by_z: where δz goes, shape (time, batch, gates).

        Returns:
            What computes the slopes of a stretch of steps; what takes step t back, from δs_t to δz_t and to the part of
            the state that is carried; and what gives the gradients of ``by_input`` and of its weights at the end,
            when it may write into ``by_z``.
        """


class GatedKernel(SequenceKernel):
    """A product and gates over a whole sequence.

    Its tensors are what the inputs contribute, s_0, the weights of the gates and those of the product.

    Args:
        product: what the state contributes.
        gates: the point-wise part.
    """

    def __init__(self, product: RecurrentProduct, gates: ElementwiseUpdate) -> None:
        self.product, self.gates = product, gates

    @property
    def identity(self) -> Hashable:
        """The product and the gates, with all that they were made of."""
        return tuple((type(each), *vars(each).values()) for each in (self.product, self.gates))

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, state, *weights = tensors
        own, weights = weights[: self.gates.weights], weights[self.gates.weights :]
        states = [state]
        for t, x in enumerate(by_input):
            product, memory = self.product.plain(t, states[-1], weights)
            states.append(torch.cat((*memory, *self.gates.plain(x, product, states[-1], own)), dim=-1))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer."""
        by_input, state, *weights = tensors
        own, weights = weights[: self.gates.weights], weights[self.gates.weights :]
        states = state.new_empty(len(by_input) + 1, *state.shape)
        states[0] = state
        multiply, kept = self.product.forward(states, weights)
        offsets, sums, gate, more = self.gates.forward(by_input, states, own)
        for t in range(len(by_input)):
            multiply(t, offsets[t], sums[t])
            gate(t)
        return states, (*kept, *more)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> Gradients:
        """Carry δs alone through the loop."""
        by_input, state, *weights = tensors
        existing = [weight is not None for weight in weights[: self.gates.weights]]
        weights, own = weights[self.gates.weights :], self.product.keeps
        arrived, by_z = gradient.clone(), torch.empty_like(by_input)
        multiply, of_product = self.product.backward(states, weights, kept[:own], arrived, by_z)
        slopes, gate, of_gates = self.gates.backward(states, kept[own:], arrived, by_z)
        for start, stop in stretches(len(by_input), state.numel()):
            slopes(start, stop)
            for t in range(stop - 1, start - 1, -1):
                gate(t)
                multiply(t)
        by_weights = of_product()  # of δz, before the gates turn it into the gradient of what the inputs contribute
        by_token, *by_own = of_gates()
        found = (one if exists else None for one, exists in zip(by_own, existing, strict=True))
        return by_token, arrived[0], *found, *by_weights
