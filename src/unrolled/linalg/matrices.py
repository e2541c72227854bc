"""An operator by its matrices: for a small state a product with them takes less time than a run of the step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.linalg.operators import Operator, Workspace

__all__ = ["Matrices"]


@dataclass(frozen=True)
class Matrices(Operator):
    """The matrices of every step and example."""

    by_state: Tensor
    """A, shape (…, batch, state, state)."""
    by_input: Tensor
    """C, shape (…, batch, state, input)."""

    def at(self, time: int | slice) -> Matrices:
        """Return the operator of one step, or of several."""
        return replace(self, by_state=self.by_state[time], by_input=self.by_input[time])

    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs."""
        image = _product(self.by_state, state)
        image = image if inputs is None else image.add_(_product(self.by_input, inputs))
        return image if out is None else out.copy_(image)

    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state)."""
        by_state = _product(self.by_state.mT, state)
        by_input = _product(self.by_input.mT, state) if with_inputs else None
        return by_state if out is None else out.copy_(by_state), by_input

    def _sizes(self) -> tuple[Tensor, int]:
        return self.by_state[..., 0], self.by_input.shape[-1]


def _product(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply each matrix with its vector, or with one of each column of a block."""
    if vectors.dim() < matrices.dim():
        return torch.matmul(matrices, vectors[..., None])[..., 0]
    # one product of matrices for each example: its columns are the rows of a block
    return torch.matmul(vectors.movedim(0, -2), matrices.mT).movedim(-2, 0).contiguous()
