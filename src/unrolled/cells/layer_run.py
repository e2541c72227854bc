"""One layer of a network as it ran: what it read, the states it went through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.cells.ray import MatrixFreeRay, Ray

if TYPE_CHECKING:
    from unrolled.cells.base import Cell

__all__ = ["LayerRun"]


@dataclass(frozen=True)
class LayerRun:
    """A cell's run over a batch of sequences."""

    cell: Cell
    inputs: Tensor
    """x_1 … x_T, shape (time, batch, input)."""
    initial: Tensor
    """s_0, shape (batch, state)."""
    image: Tensor
    """f(x_t, s_{t-1}) for every step, shape (time, batch, state): s_t, up to rounding."""

    @property
    def states(self) -> Tensor:
        """s_0 … s_T, shape (time + 1, batch, state)."""
        return torch.cat((self.initial[None], self.image))

    def ray(self, origin: Tensor) -> Ray[Any]:
        """Draw the line from (origin, 0) to (x_t, s_{t-1}) for every step, along which the cell is linearised.

        Args:
            origin: the inputs at α = 0, shape (time, batch, input); ``inputs`` itself where they do not move.

        Returns:
            The ray.
        """
        return MatrixFreeRay(self.cell.step, origin, self.inputs, self.states)
