"""Operators made of increments: for a closed cell its diagonals, for any other cell its step, run on blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.held_forward.custom_functions import custom_functions_followed
from unrolled.held_forward.increments.increments import Increments, SecantIncrements, ShareIncrements
from unrolled.linalg.matrices import small_as_matrices
from unrolled.linalg.operators import Operator, WithoutWorkspace
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term, block, used_products

__all__ = ["HeldStep", "diagonals_by_increments"]


def diagonals_by_increments(
    mode: Increments,
    function: Callable[..., tuple[Tensor, ...]],
    origin: Sequence[Tensor],
    end: Sequence[Tensor],
    terms: Sequence[tuple[Term, ...]],
    parts: tuple[str, ...],
    units: int,
) -> Named:
    """Compute the diagonals of an element-wise function between two points, all in one run on unit increments.

    Args:
        mode: Where lines begin, and how products are shared.
        function: Takes the tensors of a point, and returns the parts of the new state, each (…, d).
        origin: The arguments where the lines begin, each (…, K·d).
        end: The arguments where they end.
        terms: The terms of the first, the second … argument; their diagonals are computed.
        parts: The names of the parts.
        units: d.
    """
    columns = [(place, product) for place, of_argument in enumerate(terms) for product in used_products(of_argument)]
    arguments = []
    for place, (start, stop) in enumerate(zip(origin, end, strict=True)):
        shape = (len(columns), *stop.shape)
        unit = stop.new_zeros(shape)
        for column, (argument, product) in enumerate(columns):
            if argument == place:
                block(unit[column], product, units).fill_(1)
        arguments.append(mode.follow(unit, start.expand(shape), stop.expand(shape)))
    with mode:
        images = dict(zip(parts, function(*arguments), strict=True))
    return {
        term.diagonal: images[term.part][column]
        for column, (place, product) in enumerate(columns)
        for term in terms[place]
        if term.product == product
    }


@dataclass(frozen=True)
class HeldStep(WithoutWorkspace):
    """The step of any cell with the factors of one point held: nothing of the cell need be known but its operations.

    ``share`` is None for the secant between (origin, 0) and (inputs, state), and p for lines that begin at zero.
    """

    step: Callable[[Tensor, Tensor], Tensor]
    origin: Tensor
    """The input where the lines begin, shape (…, batch, input)."""
    inputs: Tensor
    """The input where they end."""
    state: Tensor
    """The state where they end, shape (…, batch, state); they begin at the empty state."""
    share: float | None = None

    def at(self, time: int | slice) -> HeldStep:
        """Return the operator of one step, or of several."""
        return replace(self, origin=self.origin[time], inputs=self.inputs[time], state=self.state[time])

    def ready(self, stored: bool) -> Operator:
        """Return the matrices of a small layer if they may be stored, else the operator itself, after one run.

        Either way an operation without a rule is refused here, and not in the middle of a sweep.

        Raises:
            UnsupportedOperationError: If the step has such an operation.
        """
        operator = small_as_matrices(self) if stored else self
        if operator is self:
            first = self.at(0)
            first.apply(torch.zeros_like(first.state)[None])
        return operator

    def _run(self, state: Tensor, inputs: Tensor) -> Tensor:
        """Run the step on blocks of increments."""
        mode = SecantIncrements() if self.share is None else ShareIncrements(self.share)
        lead = state.shape[:-1]
        begin = self.origin if self.share is None else torch.zeros_like(self.origin)
        s = mode.follow(state * 1, *(v.expand(*lead, v.shape[-1]) for v in (torch.zeros_like(self.state), self.state)))
        x = mode.follow(inputs * 1, *(v.expand(*lead, v.shape[-1]) for v in (begin, self.inputs)))
        with custom_functions_followed(), mode:
            return self.step(x, s)

    def image(self, state: Tensor, inputs: Tensor | None) -> Tensor:
        """Compute A·state + C·inputs."""
        given = state.new_zeros(*state.shape[:-1], self.inputs.shape[-1]) if inputs is None else inputs
        return self._run(state, given)

    def covectors(self, state: Tensor, with_inputs: bool) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state) by reverse mode through the run, which is linear."""
        with torch.enable_grad():
            s = torch.zeros_like(state).requires_grad_()
            x = state.new_zeros(*state.shape[:-1], self.inputs.shape[-1]).requires_grad_()
            image = self._run(s, x)
            by_state, by_input = torch.autograd.grad(image, (s, x), state, allow_unused=True)
        by_state = torch.zeros_like(s) if by_state is None else by_state
        by_input = torch.zeros_like(x) if by_input is None else by_input
        return by_state, by_input if with_inputs else None

    def sizes(self) -> tuple[Tensor, int]:
        """Return a tensor of shape (…, batch, state), and the length of an input vector."""
        return self.state, self.inputs.shape[-1]
