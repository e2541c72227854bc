r"""Multiplicative models: an n-gram is the product of its tokens, and a context is the longest n-gram.

.. math::
    \text{VM:} \quad v_{i:t} = g(x_i) ⊙ ⋯ ⊙ g(x_t), \qquad g(x) = \tanh(W x + b) \\
    \text{MM:} \quad M_{i:t} = A(x_i)\, A(x_{i+1}) ⋯ A(x_t)

VM (vector multiplicative) multiplies element by element, so it loses the order of the tokens. The table leaves g open;
here it is that of MVMA-E. MM (matrix multiplicative) reads a token's vector as a square matrix, row by row: an
embedding of size 1,024 gives the 32 x 32 matrices of the paper. MM has no parameters; it learns only the embedding.

Source:
    Implicit n-grams, table 1 and appendix E.1; Mitchell and Lapata (2008), Vector-based models of semantic
    composition; Yessenalina and Cardie (2011), Compositional matrix-space models.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.composition.base import RecursiveEncoder
from unrolled.errors import UsageError

__all__ = ["MMEncoder", "VMEncoder"]

_INITIAL_STD = 0.01
"""Standard deviation of the noise added to the identity when the token matrices are initialised."""


class VMEncoder(RecursiveEncoder):
    """VM: element-wise products of vectors; ``hidden_size`` is the length of g(x) (d in the equations)."""

    name = "vm"
    context = "longest"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.token = nn.Linear(input_size, hidden_size, bias)

    def token_terms(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute g(x)."""
        return (torch.tanh(self.token(inputs)),)

    def unigram(self, token: tuple[Tensor, ...]) -> Tensor:
        """Return g(x_t)."""
        return token[0]

    def extend(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by g(x_t)."""
        return ngrams * token[0]


class MMEncoder(RecursiveEncoder):
    """MM: products of matrices.

    Args:
        input_size: Number of features of each token vector: n² for matrices of shape (n, n).
        hidden_size: The same number, since a context is a matrix of the same shape.
        batch_first: Whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: The sizes differ or are not a square number.
    """

    name = "mm"
    context = "longest"

    def __init__(self, input_size: int, hidden_size: int, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.side = math.isqrt(input_size)
        if self.side**2 != input_size or hidden_size != input_size:
            raise UsageError(
                f"input_size is {input_size} and hidden_size is {hidden_size}; expected the same square number for "
                "both, such as 1024, because mm reads a token vector as a square matrix"
            )

    def initialise(self, embedding: nn.Embedding) -> None:
        """Start every token near the identity in place: products of small matrices would vanish."""
        with torch.no_grad():
            embedding.weight.normal_(0.0, _INITIAL_STD).add_(torch.eye(self.side).flatten().to(embedding.weight))

    def token_terms(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the token vectors unchanged."""
        return (inputs,)

    def unigram(self, token: tuple[Tensor, ...]) -> Tensor:
        """Return A(x_t), row by row."""
        return token[0]

    def extend(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Multiply by A(x_t) from the right."""
        square = (self.side, self.side)
        return (ngrams.unflatten(-1, square) @ token[0].unflatten(-1, square)).flatten(-2)
