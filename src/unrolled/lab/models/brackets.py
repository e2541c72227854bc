r"""Predict the next bracket: embeddings, an encoder, and an affine map of its state.

.. math:: p = \mathrm{softmax}(V\, h_t + b)

Any encoder that reads from left to right will do. Of the Dyck-RNN, whose state is a stack, the top alone is read,
and with fixed scalar embeddings the model of the closing bracket has 1 + 2k parameters to train, five for two kinds
of brackets: the gate's w, V and b.

Source:
    Second-order RNNs, section 4.2; section 6.2 for learned embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.dyck import Dyck
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UsageError
from unrolled.lab.models.run_encoder import reads_ahead, run_encoder

__all__ = ["NextBracketModel", "dyck_rnn", "fixed_brackets", "learned_brackets"]


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


class NextBracketModel(nn.Module):
    """The logits of what may come next, after every prefix of strings of brackets.

    Args:
        embedding: of the 2k brackets, opening ones first; see :func:`fixed_brackets`,
            :func:`learned_brackets`.
        encoder: a batch-first network with the interface of ``torch.nn.RNN``.
        head: from a context to the logits; it reads as many of its first features as it has inputs, which is how it
            sees but the top of a stack.
        dropout: the share of the features of contexts dropped in training.

    Raises:
        UsageError: when the encoder reads ahead.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.Module, head: nn.Linear, dropout: float = 0.0) -> None:
        super().__init__()
        if reads_ahead(encoder, embedding.embedding_dim):
            raise UsageError(
                "the encoder reads ahead, and would see the bracket that it is asked for; "
                "expected one that reads from left to right: bidirectional=false, and causal=true of a transformer"
            )
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.dropout = nn.Dropout(dropout)

    def forward(self, brackets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Give the logits.

        Args:
            brackets: indices of the brackets, shape (batch, time).
            lengths: how long each string is, shape (batch,); all of it when left out.

        Returns:
            Logits, shape (batch, time, outputs): those at t follow the brackets up to and with t.
        """
        states = run_encoder(self.encoder, self.embedding(brackets), lengths)
        return self.head(self.dropout(states[..., : self.head.in_features]))


def dyck_rnn(embedding: nn.Embedding, depth: int) -> NextBracketModel:
    """Build the Dyck-RNN's model of the closing bracket.

    Args:
        embedding: of the 2k brackets; see :func:`fixed_brackets`, :func:`learned_brackets`.
        depth: m, how deep brackets may be nested: the slots of the stack.

    Returns:
        The model; its logits are those of the k closing brackets.

    Example:
        >>> model = dyck_rnn(fixed_brackets(2), depth=4)
        >>> sum(p.numel() for p in model.parameters() if p.requires_grad)
        5
    """
    size = embedding.embedding_dim
    stack = Recurrent(Dyck, size, size * depth, batch_first=True)
    return NextBracketModel(embedding, stack, nn.Linear(size, embedding.num_embeddings // 2))
