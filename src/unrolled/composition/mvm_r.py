r"""MVM-R, matrix-vector multiplicative, restricted: bigrams, the first word a matrix, the second a vector.

.. math:: v_{t-1:t} = A(x_{t-1})\, g(x_t), \qquad c_{1:t} = v_{t-1:t}

as an adjective's matrix acts on its noun's vector: the matrix is the earlier token's, unlike in MVM. The first
token of a sequence follows the empty string, whose matrix is the identity, so that c_{1:1} = g(x_1). The table
leaves g and A open; they are MVMA-ME's here: Baroni and Zamparelli's own free matrix for each word has d² numbers.

Source:
    Implicit n-grams, table 1; Baroni and Zamparelli (2010), Nouns are vectors, adjectives are matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.cells.mvma_me import MVMAME
from unrolled.composition.base import CompositionEncoder

__all__ = ["MVMR"]


class MVMR(CompositionEncoder):
    """Bigrams.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether the biases exist.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    name = "mvm_r"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = True) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.cell = MVMAME(input_size, hidden_size, bias)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute all bigrams at once, before them the first token alone."""
        (offset,), coefficients = self.cell.read(inputs)
        bigrams = self.cell.transform([c[:-1] for c in coefficients], offset[1:])
        return torch.cat((offset[:1], bigrams))

    def table(self, inputs: Tensor) -> Tensor:
        """Put each bigram where it starts; the first token alone starts at itself."""
        contexts, time = self.contexts(inputs), len(inputs)
        starts = torch.arange(time, device=inputs.device).sub(1).clamp_min(0)
        at_start = starts[:, None] == torch.arange(time, device=inputs.device)
        return torch.where(at_start[..., None, None], contexts[:, None], torch.zeros_like(contexts[:, None]))
