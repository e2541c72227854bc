"""An operator by its matrices: for a small state a product with them takes less time than a run of the step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.linalg.operators import Operator, WithoutWorkspace

__all__ = ["Matrices", "small_as_matrices"]

_STORED = 2**15
"""Up to so many numbers the matrices of a call are computed once; a larger one runs its step for each product.

In float32 a loop of 1,000 steps then keeps 130 MB of them at most.
"""
_OF_UNITS = 2**18
"""Up to so many numbers are the unit vectors of all rows of a layer; a long input has more than the matrices."""


@dataclass(frozen=True)
class Matrices(WithoutWorkspace):
    """The matrices of every step and example."""

    by_state: Tensor
    """A, shape (…, batch, state, state)."""
    by_input: Tensor
    """C, shape (…, batch, state, input)."""

    def at(self, time: int | slice) -> Matrices:
        """Return the operator of one step, or of several."""
        return replace(self, by_state=self.by_state[time], by_input=self.by_input[time])

    def image(self, state: Tensor, inputs: Tensor | None) -> Tensor:
        """Compute A·state + C·inputs."""
        image = _product(self.by_state, state)
        return image if inputs is None else image.add_(_product(self.by_input, inputs))

    def covectors(self, state: Tensor, with_inputs: bool) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state)."""
        by_state = _product(self.by_state.mT, state)
        return by_state, _product(self.by_input.mT, state) if with_inputs else None

    def sizes(self) -> tuple[Tensor, int]:
        """Return a tensor of shape (…, batch, state), and the length of an input vector."""
        return self.by_state[..., 0], self.by_input.shape[-1]


def small_as_matrices(operator: Operator) -> Operator:
    """Return the matrices of a small layer, by one run on unit vectors; a larger operator is returned as it is."""
    example, input_size = operator.sizes()
    rows, size = example[..., 0].numel(), example.shape[-1]
    columns = size + input_size
    if columns * rows * size > _STORED or columns * rows * columns > _OF_UNITS:
        return operator
    unit = torch.eye(columns, dtype=example.dtype, device=example.device)
    every = unit.view(columns, *[1] * (example.dim() - 1), columns).expand(columns, *example.shape[:-1], columns)
    state, inputs = every.split((size, input_size), dim=-1)
    by_state, by_input = operator.apply(state, inputs).movedim(0, -1).split((size, input_size), dim=-1)
    return Matrices(by_state, by_input, by_quadrature=operator.by_quadrature)


def _product(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply each matrix with its vector, or with one of each column of a block."""
    if vectors.dim() < matrices.dim():
        return torch.matmul(matrices, vectors[..., None])[..., 0]
    # one product of matrices for each example: its columns are the rows of a block
    return torch.matmul(vectors.movedim(0, -2), matrices.mT).movedim(-2, 0).contiguous()
