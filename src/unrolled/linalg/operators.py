"""Linear operators: what all of them do, and the Jacobian of any step, whose matrices are not stored.

Shapes: a block of vectors is (columns, batch, n). The columns come first so that the vectors alive so far are one
contiguous matrix, and so that the coefficients of a step, (batch, d), broadcast over them. Coefficients may have a
leading time axis; :meth:`Operator.at` takes one step out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unrolled.linalg.quadrature import Named, Rule

__all__ = ["MatrixFree", "Operator", "WithoutWorkspace", "Workspace"]


class Workspace:
    """Named arrays, each as large as the largest request so far."""

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return an uninitialised, contiguous array with the type and device of ``like``.

        The next call with the same name returns the same memory.
        """
        count = math.prod(shape)
        held = self._arrays.get(name)
        if held is None or held.numel() < count:
            # twice the request: blocks grow by one column a step
            held = self._arrays[name] = like.new_empty(2 * count)
        return held[:count].view(shape)


@dataclass(frozen=True)
class Operator(ABC):
    """The Jacobian of one layer's step: (state, input) -> state, for every step and example."""

    by_quadrature: bool = field(default=False, kw_only=True)
    """Whether it is a mean that a quadrature took, whose error is more than rounding."""

    @abstractmethod
    def at(self, time: int | slice) -> Operator:
        """Return the operator of one step, or of several; then each has a vector of its own."""

    @abstractmethod
    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs.

        Args:
            state: A block of state vectors, shape (columns, batch, state).
            inputs: A block of input vectors, shape (columns, batch, input); None means zero.
            out: Receives the images; must not overlap with ``state``.
            workspace: Memory for intermediate results.

        Returns:
            The block of images, shape (columns, batch, state).
        """

    def apply_inputs(self, inputs: Tensor, first: int = 0, workspace: Workspace | None = None) -> Tensor:
        """Compute C·inputs for features from ``first`` on; the other features of the input vectors are zero."""
        example, size = self.sizes()
        whole = inputs.new_zeros(*inputs.shape[:-1], size)
        whole[..., first : first + inputs.shape[-1]] = inputs
        state = inputs.new_zeros(*inputs.shape[:-1], example.shape[-1])
        return self.apply(state, whole, workspace=workspace)

    @abstractmethod
    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state).

        Args:
            state: A block of covectors, shape (columns, batch, state).
            with_inputs: Whether to compute the second product.
            out: Receives the first product; must not overlap with ``state``.
            workspace: Memory for intermediate results.

        Returns:
            Blocks of shape (columns, batch, state) and (columns, batch, input). The second is None if it was not
            asked for, or if C is zero.
        """

    @abstractmethod
    def sizes(self) -> tuple[Tensor, int]:
        """Return a tensor of shape (…, batch, state), and the length of an input vector."""

    def dense(self) -> tuple[Tensor, Tensor]:
        """Build the matrices A, shape (…, batch, state, state), and C, shape (…, batch, state, input).

        The matrices take state² numbers for each step and example: this is for inspection and tests.
        """
        example, input_size = self.sizes()
        size = example.shape[-1]
        rows = torch.eye(size, dtype=example.dtype, device=example.device)
        rows = rows.view(size, *[1] * (example.dim() - 1), size).expand(size, *example.shape).contiguous()
        by_state, by_input = self.apply_transpose(rows)
        if by_input is None:
            by_input = example.new_zeros(*rows.shape[:-1], input_size)
        return by_state.movedim(0, -2), by_input.movedim(0, -2)


@dataclass(frozen=True)
class WithoutWorkspace(Operator):
    """An operator whose products are new tensors, which are copied where memory is given for them."""

    @abstractmethod
    def image(self, state: Tensor, inputs: Tensor | None) -> Tensor:
        """Compute A·state + C·inputs."""

    @abstractmethod
    def covectors(self, state: Tensor, with_inputs: bool) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state)."""

    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs."""
        image = self.image(state, inputs)
        return image if out is None else out.copy_(image)

    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state)."""
        by_state, by_input = self.covectors(state, with_inputs)
        return by_state if out is None else out.copy_(by_state), by_input


@dataclass(frozen=True)
class MatrixFree(WithoutWorkspace):
    """A rule on the Jacobian of any differentiable step, by forward and reverse mode."""

    step: Callable[[Tensor, Tensor], Tensor]
    """(inputs, state) -> new state, on leading axes of any shape."""
    origin: Tensor
    """The input at α = 0, shape (…, batch, input)."""
    displacement: Tensor
    """The input at α = 1 minus the input at α = 0."""
    state: Tensor
    """The state at α = 1, shape (…, batch, state)."""
    rule: Rule

    def at(self, time: int | slice) -> MatrixFree:
        """Return the operator of one step, or of several."""
        return replace(self, origin=self.origin[time], displacement=self.displacement[time], state=self.state[time])

    def sizes(self) -> tuple[Tensor, int]:
        """Return a tensor of shape (…, batch, state), and the length of an input vector."""
        return self.state, self.origin.shape[-1]

    def _point(self, alpha: Tensor | float, like: Tensor) -> tuple[Tensor, Tensor]:
        lead = like.shape[:-1]
        x = self.origin + alpha * self.displacement
        s = alpha * self.state
        # forward mode writes tangents of the primals' layout: an expanded primal would be written many times over
        return x.expand(*lead, x.shape[-1]).contiguous(), s.expand(*lead, s.shape[-1]).contiguous()

    def image(self, state: Tensor, inputs: Tensor | None) -> Tensor:
        """Compute A·state + C·inputs by Jacobian-vector products."""

        def along(alpha: Tensor | float) -> Named:
            x, s = self._point(alpha, state)
            direction = torch.zeros_like(x) if inputs is None else inputs
            return {"image": torch.func.jvp(self.step, (x, s), (direction, state))[1]}

        return self.rule(along)["image"]

    def covectors(self, state: Tensor, with_inputs: bool) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state) by vector-Jacobian products."""

        def along(alpha: Tensor | float) -> Named:
            x, s = self._point(alpha, state)
            pullback = torch.func.vjp(self.step, x, s)[1]
            by_input, by_state = pullback(state)
            return {"state": by_state, "input": by_input}

        found = self.rule(along)
        return found["state"], found["input"] if with_inputs else None
