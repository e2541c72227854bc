r"""MM, matrix multiplicative: a token is a matrix, an n-gram the product of its tokens' matrices.

.. math:: M_{i:t} = A(x_i)\, A(x_{i+1}) ⋯ A(x_t), \qquad c_{1:t} = M_{1:t}

A token's vector is its matrix, row by row: an embedding of 1,024 numbers gives the 32 x 32 matrices of the paper.
The model itself has no parameter; all that is learned is the embedding.

Source:
    Implicit n-grams, table 1 and appendix E.1; Yessenalina and Cardie (2011), Compositional matrix-space models.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.composition.base import GrowingEncoder
from unrolled.errors import UsageError

__all__ = ["MM"]

NOISE = 0.01
"""The standard deviation of what a token's matrix begins with, around the identity."""


class MM(GrowingEncoder):
    """Products of matrices.

    Args:
        input_size: n², the length of a token's vector.
        hidden_size: n² as well, the length of a context.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when the sizes differ, or are no square.
    """

    name = "mm"
    context = "longest"

    def __init__(self, input_size: int, hidden_size: int, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.side = math.isqrt(input_size)
        if self.side**2 != input_size or hidden_size != input_size:
            raise UsageError(
                f"input_size is {input_size} and hidden_size {hidden_size}; expected the same square number, "
                "such as 1024: a token's vector is its matrix"
            )

    def initialise(self, embedding: nn.Embedding) -> None:
        """Let every token begin near the identity: products of small matrices would come to nothing.

        Args:
            embedding: what gives the tokens' vectors; changed in place.
        """
        with torch.no_grad():
            embedding.weight.normal_(0.0, NOISE).add_(torch.eye(self.side).flatten().to(embedding.weight))

    def tokens(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Take the vectors as they are."""
        return (inputs,)

    def begin(self, token: tuple[Tensor, ...]) -> Tensor:
        """Give A(x_t), row by row."""
        return token[0]

    def grow(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by A(x_t) from the right."""
        square = (self.side, self.side)
        return (ngrams.unflatten(-1, square) @ token[0].unflatten(-1, square)).flatten(-2)
