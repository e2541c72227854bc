r"""VA-W as the authors' published code has it: a word has the matrix of its place in a block of m words.

.. math:: c_{1:t} = \sum_{i \le t} C_{i \bmod m}\, x_i

The blocks begin at the first word and cover the whole text. VA-W of the paper, in
:mod:`unrolled.composition.vector_additive`, has the matrix of the distance between a word and the end of its n-gram,
and its contexts reach back m words. The code is a convolution of width and stride m whose results are summed. It leaves
out a last block that is not full and reads padding like words; here neither is so.

Its tagger, and :class:`PlaceWeights`, do not sum: each word is read alone, c_t = C_{t mod m} x_t.

Source:
    The class CNNClassifier in the notebook RNN_relation_classification(semeval2010-8), and VAWEncoder in linear_crf.py,
    of https://github.com/richardsun-voyager/inibr, read and not run.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.batch_layout import Layout
from unrolled.composition.base import Encoder

__all__ = ["BlockWeights", "PlaceWeights"]


class PlaceWeights(Encoder):
    """Word vectors, each multiplied by the matrix of its place in a block.

    Args:
        input_size: Number of features of each word vector.
        hidden_size: Number of features of each context.
        block: Number of words in a block (m).
    """

    def __init__(self, input_size: int, hidden_size: int, block: int) -> None:
        super().__init__(input_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(block, hidden_size, input_size))
        bound = (block * input_size) ** -0.5  # that of torch.nn.Conv1d
        nn.init.uniform_(self.weight, -bound, bound)

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Multiply each word; the vector of a sequence is that of its last word."""
        weighted = inputs.new_empty(*inputs.shape[:-1], self.output_size)
        block = len(self.weight)
        for place, weight in enumerate(self.weight.unbind()[: len(inputs)]):
            weighted[place::block] = linear(inputs[place::block], weight)
        return weighted, layout.last(weighted)


class BlockWeights(PlaceWeights):
    """Sums of word vectors, each multiplied by the matrix of its place in a block."""

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Sum over all words up to each one; the vector of a sequence is the sum of all."""
        contexts = super().encode(inputs, layout)[0].cumsum(dim=0)
        return contexts, layout.last(contexts)
