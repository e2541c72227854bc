r"""N-grams as products of matrices and a vector, with the (g, A) of an affine cell.

.. math:: v_{i:t} = A(x_t) ⋯ A(x_{i+1})\, g(x_i)

MVM takes the longest n-gram for the context, MVMA the sum of all: for the same cell the two differ in nothing else.
A is applied, never formed.

Source:
    Implicit n-grams, definitions 1 and 2, and table 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.cells.affine import Affine, AffineCell
from unrolled.composition.base import GrowingEncoder

__all__ = ["MVM", "MVMA", "MatrixVectorEncoder"]


class MatrixVectorEncoder(GrowingEncoder):
    """N-grams of an affine cell.

    Args:
        cell: gives g and A.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    def __init__(self, cell: AffineCell, batch_first: bool = True) -> None:
        super().__init__(cell.input_size, cell.output_size, batch_first)
        self.cell = cell

    def tokens(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute the parts of g, then the diagonals of A."""
        affine = self.cell.read(inputs)
        return (*affine.offset, *affine.coefficients)

    def begin(self, token: tuple[Tensor, ...]) -> Tensor:
        """Give g(x_t)."""
        return torch.cat(token[: len(self.cell.carry)], dim=-1)

    def grow(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Apply A(x_t) to all n-grams: one product with the stacked weights."""
        return self.cell.transform(token[len(self.cell.carry) :], ngrams)

    def shown(self, states: Tensor) -> Tensor:
        """Pick the hidden output."""
        return self.cell.hidden(states)


class MVM(MatrixVectorEncoder):
    """The longest n-gram alone is the context.

    Args:
        cell: gives g and A.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    context = "longest"

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run the recurrence in which no token but the first adds anything."""
        cell = self.cell

        def unmoved(by_input: Tensor) -> Affine:
            offset, coefficients = cell.expand(by_input)
            return Affine(tuple(torch.zeros_like(part) for part in offset), coefficients)

        start = torch.cat(cell.pattern.confine(cell.read(inputs[0]).offset), dim=-1)
        return cell.hidden(cell.scan(inputs[1:], start, unmoved))


class MVMA(MatrixVectorEncoder):
    """The sum of all n-grams is the context: the cell itself, run as a recurrence.

    Args:
        cell: gives g and A.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    context = "sum"

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run the cell."""
        return self.cell.hidden(self.cell.unroll(inputs)[1:])
