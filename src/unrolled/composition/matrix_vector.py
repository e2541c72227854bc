r"""N-grams as products of matrices and a vector, with the (g, A) of an affine cell.

.. math:: v_{i:t} = A(x_t) ⋯ A(x_{i+1})\, g(x_i)

MVM takes the longest n-gram as the context, MVMA the sum of all; with the same cell they differ in nothing else. The
last letter names the cell: (g, A) are those of the expansion at zero of an Elman network (E), a GRU (G) or an LSTM (L),
or A scales the rows of one matrix (ME). MVM-R has bigrams only:

.. math:: v_{t-1:t} = A(x_{t-1})\, g(x_t), \qquad c_{1:t} = v_{t-1:t}

as an adjective's matrix acts on its noun's vector: unlike in MVM the matrix belongs to the earlier token. A is applied
without being built.

Source:
    Implicit n-grams, definitions 1 and 2, tables 1 and 2, and section 5; for MVM-R Baroni and Zamparelli (2010),
    Nouns are vectors, adjectives are matrices.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from unrolled.cells.affine import AffineCell, AffineMap
from unrolled.cells.mvma import MVMAE, MVMAG, MVMAL, MVMAME
from unrolled.composition.base import CompositionEncoder, RecursiveEncoder

__all__ = [
    "MVMAEEncoder",
    "MVMAGEncoder",
    "MVMALEncoder",
    "MVMAMEEncoder",
    "MVMEEncoder",
    "MVMGEncoder",
    "MVMLEncoder",
    "MVMREncoder",
]


class _MatrixVectorEncoder(RecursiveEncoder):
    """N-grams of an affine cell."""

    cell_type: ClassVar[type[AffineCell]]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.cell = self.cell_type(input_size, hidden_size, bias)

    def token_terms(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute the parts of g, then the diagonals of A."""
        offset, diagonals = self.cell.token_maps(inputs)
        return (*offset, *(diagonals[name] for name in self.cell.diagonal_names))

    def unigram(self, token: tuple[Tensor, ...]) -> Tensor:
        """Return g(x_t)."""
        return torch.cat(token[: len(self.cell.parts)], dim=-1)

    def extend(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Apply A(x_t) to all n-grams, with one product with the stacked weights."""
        diagonals = dict(zip(self.cell.diagonal_names, token[len(self.cell.parts) :], strict=True))
        return self.cell.apply_linear(diagonals, ngrams)

    def output(self, states: Tensor) -> Tensor:
        """Select the hidden state."""
        return self.cell.hidden(states)


class _MVM(_MatrixVectorEncoder):
    """Base of the models whose context is the longest n-gram alone."""

    context = "longest"

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run the recurrence with g = 0 for every token but the first."""
        cell = self.cell

        def without_offset(by_input: Tensor) -> AffineMap:
            offset, diagonals = cell.affine_map(by_input)
            return AffineMap(tuple(torch.zeros_like(part) for part in offset), diagonals)

        start = torch.cat(cell.pattern.clamp_parts(cell.token_maps(inputs[0]).offset), dim=-1)
        return cell.hidden(cell.scan(inputs[1:], start, without_offset))


class MVMEEncoder(_MVM):
    """MVM-E: the longest n-gram of the Elman network's expansion at zero; ``hidden_size`` is the size of a context."""

    name = "mvm_e"
    cell_type = MVMAE


class MVMGEncoder(_MVM):
    """MVM-G: the longest n-gram of the GRU's expansion at zero; ``hidden_size`` is the size of a context."""

    name = "mvm_g"
    cell_type = MVMAG


class MVMLEncoder(_MVM):
    """MVM-L: the longest n-gram of the LSTM's expansion at zero; ``hidden_size`` is the size of a context."""

    name = "mvm_l"
    cell_type = MVMAL


class _MVMA(_MatrixVectorEncoder):
    """Base of the models whose context is the sum of all n-grams: the affine cell itself, run as a recurrence."""

    context = "sum"

    def contexts(self, inputs: Tensor) -> Tensor:
        """Run the cell."""
        return self.cell.hidden(self.cell.unroll(inputs)[1:])


class MVMAEEncoder(_MVMA):
    """MVMA-E: the sum of all n-grams of the Elman network's expansion at zero; the cell ``mvma_e`` with its n-grams."""

    name = "mvma_e"
    cell_type = MVMAE


class MVMAGEncoder(_MVMA):
    """MVMA-G: the sum of all n-grams of the GRU's expansion at zero; the cell ``mvma_g`` with its n-grams."""

    name = "mvma_g"
    cell_type = MVMAG


class MVMALEncoder(_MVMA):
    """MVMA-L: the sum of all n-grams of the LSTM's expansion at zero; the cell ``mvma_l`` with its n-grams."""

    name = "mvma_l"
    cell_type = MVMAL


class MVMAMEEncoder(_MVMA):
    """MVMA-ME: the sum of n-grams whose A scales the rows of one matrix; the cell ``mvma_me`` with its n-grams."""

    name = "mvma_me"
    cell_type = MVMAME


class MVMREncoder(CompositionEncoder):
    """MVM-R: bigrams; ``hidden_size`` is the size of a context.

    The first token follows the empty string, whose matrix is the identity, so that c_{1:1} = g(x_1). The table leaves
    g and A open; here they are those of MVMA-ME, since a free matrix for each word would have d² parameters.
    """

    name = "mvm_r"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.cell = MVMAME(input_size, hidden_size, bias)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute all bigrams at once, after the first token alone."""
        (offset,), diagonals = self.cell.token_maps(inputs)
        bigrams = self.cell.apply_linear({name: values[:-1] for name, values in diagonals.items()}, offset[1:])
        return torch.cat((offset[:1], bigrams))

    def table(self, inputs: Tensor) -> Tensor:
        """Place each bigram at its start; the first token alone starts at itself."""
        contexts, time = self.contexts(inputs), len(inputs)
        steps = torch.arange(time, device=inputs.device)
        at_start = steps.sub(1).clamp_min(0)[:, None] == steps
        return torch.where(at_start[..., None, None], contexts[:, None], torch.zeros_like(contexts[:, None]))
