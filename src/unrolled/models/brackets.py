r"""Predict the closing bracket: embeddings, a Dyck-RNN, and an affine map of the stack's top.

.. math:: p(\text{closing bracket}) = \mathrm{softmax}(V\, \mathrm{top}(h_T) + b)

With fixed scalar embeddings the model has 1 + 2k parameters to train, five for two kinds of brackets: the
gate's w, V and b.

Source:
    Second-order RNNs, section 4.2; section 6.2 for learned embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.dyck import Dyck
from unrolled.errors import UsageError
from unrolled.recurrence.layout import Lengths
from unrolled.recurrence.network import Recurrent

__all__ = ["ClosingBracket", "fixed_brackets", "learned_brackets"]


def _kinds(kinds: int) -> int:
    if not isinstance(kinds, int) or kinds < 1:
        raise UsageError(f"kinds is {kinds!r}; expected a positive integer")
    return kinds


def fixed_brackets(kinds: int) -> nn.Embedding:
    """Embed brackets by hand: the j-th kind opens with j and closes with -j.

    Args:
        kinds: k.

    Returns:
        Scalars for the 2k brackets, the opening ones first; they are not trained.

    Raises:
        UsageError: when kinds is not a positive integer.
    """
    opening = torch.arange(1.0, _kinds(kinds) + 1)
    return nn.Embedding.from_pretrained(torch.cat((opening, -opening))[:, None])


def learned_brackets(kinds: int, size: int) -> nn.Embedding:
    """Embed brackets at random, to be trained.

    Args:
        kinds: k.
        size: e; the paper needs two dimensions, one does not converge.

    Returns:
        Vectors for the 2k brackets, the opening ones first.

    Raises:
        UsageError: when kinds or size is not a positive integer.
    """
    if not isinstance(size, int) or size < 1:
        raise UsageError(f"size is {size!r}; expected a positive integer")
    return nn.Embedding(2 * _kinds(kinds), size)


class ClosingBracket(nn.Module):
    """The logits of the k closing brackets after a prefix.

    Args:
        embedding: of the 2k brackets, opening ones first; see :func:`fixed_brackets`,
            :func:`learned_brackets`.
        depth: m, how deep brackets may be nested: the slots of the stack.
    """

    def __init__(self, embedding: nn.Embedding, depth: int) -> None:
        super().__init__()
        size = embedding.embedding_dim
        self.embedding = embedding
        self.stack = Recurrent(Dyck, size, size * depth, batch_first=True)
        self.head = nn.Linear(size, embedding.num_embeddings // 2)

    def forward(self, brackets: Tensor, lengths: Lengths = None) -> Tensor:
        """Give the logits.

        Args:
            brackets: indices of the brackets of each prefix, shape (batch, time).
            lengths: how long each prefix is, shape (batch,); all of it when left out.

        Returns:
            Logits, shape (batch, k).
        """
        _, stack = self.stack(self.embedding(brackets), lengths=lengths)
        return self.head(stack[-1, :, : self.embedding.embedding_dim])
