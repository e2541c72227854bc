r"""Predict the closing bracket: embeddings, a Dyck-RNN, and an affine map of the stack's top.

.. math:: p(\text{closing bracket}) = \mathrm{softmax}(V\, \mathrm{top}(h_T) + b)

With fixed scalar embeddings the model has 1 + 2k parameters to train, five for two kinds of brackets: the
gate's w, V and b.

The measure is the worst case, not the mean: how often the model is right, for each distance between a bracket and
the one that closes it, and of these shares the smallest. Most distances in a string are short, so a model that
forgets is right nearly always on average, and wrong where it is far.

Source:
    Second-order RNNs, section 4.2; section 6.2 for learned embeddings; section 5.2 for the measure, after Hewitt et
    al. (2020), arXiv:2010.07515.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.dyck import Dyck
from unrolled.errors import ShapeError, UsageError
from unrolled.recurrence.layout import Lengths
from unrolled.recurrence.network import Recurrent

__all__ = ["ClosingBracket", "accuracy_by_distance", "fixed_brackets", "learned_brackets", "worst_case_accuracy"]

SURE = 0.8
"""What a prediction must give to the right bracket, of the probability of all closing ones, and exceed."""


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

    def after_every(self, brackets: Tensor) -> Tensor:
        """Give the logits after every prefix of strings, in one run.

        Args:
            brackets: indices of brackets, shape (batch, time).

        Returns:
            Logits, shape (batch, time, k): those at t follow the brackets up to and with t.
        """
        stacks, _ = self.stack(self.embedding(brackets))
        return self.head(stacks[..., : self.embedding.embedding_dim])


def accuracy_by_distance(logits: Tensor, closing: Tensor, distances: Tensor) -> dict[int, float]:
    """Count how often the right bracket gets more than 0.8 of the probability of all closing brackets.

    Args:
        logits: of the closing brackets alone, shape (predictions, k).
        closing: the kind that is right, shape (predictions,).
        distances: from the bracket that is closed to the one that closes it, shape (predictions,).

    Returns:
        The share that is right, for each distance that occurs, in ascending order.

    Raises:
        ShapeError: when the three do not speak of the same predictions, or of none.
    """
    if logits.dim() != 2 or not len(logits) or not closing.shape == distances.shape == logits.shape[:1]:
        raise ShapeError(
            f"logits, closing and distances have shapes {tuple(logits.shape)}, {tuple(closing.shape)} and "
            f"{tuple(distances.shape)}; expected (n, k), (n,) and (n,) with n at least 1"
        )
    right = logits.softmax(-1).gather(1, closing[:, None])[:, 0] > SURE
    seen, place, count = distances.unique(return_inverse=True, return_counts=True)
    shares = (
        torch.zeros(len(seen), dtype=torch.float64, device=logits.device).index_add(0, place, right.double()) / count
    )
    return dict(zip(seen.tolist(), shares.tolist(), strict=True))


def worst_case_accuracy(logits: Tensor, closing: Tensor, distances: Tensor) -> float:
    """Give the accuracy at the distance where it is smallest: WCPA.

    Args:
        logits: of the closing brackets alone, shape (predictions, k).
        closing: the kind that is right, shape (predictions,).
        distances: from the bracket that is closed to the one that closes it, shape (predictions,).

    Returns:
        The smallest of :func:`accuracy_by_distance`, from 0 to 1.
    """
    return min(accuracy_by_distance(logits, closing, distances).values())
