r"""Predict the next bracket: embeddings, an encoder, and an affine map of its state.

.. math:: p = \mathrm{softmax}(V\, h_t + b)

Any encoder that reads from left to right works. The state of the Dyck-RNN is a stack, of which only the top is read.
With fixed scalar embeddings its model of the closing bracket trains 1 + 2k parameters, five for two kinds of brackets:
the gate's w, V and b.

Source:
    Second-order RNNs, section 4.2; section 6.2 for learned embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.base import checked_size
from unrolled.cells.recurrent import Recurrent
from unrolled.cells.second_order import Dyck
from unrolled.errors import UsageError
from unrolled.lab.models.run_encoder import reads_ahead, run_encoder

__all__ = ["NextBracketModel", "dyck_rnn", "fixed_brackets", "learned_brackets"]


def fixed_brackets(kinds: int) -> nn.Embedding:
    """Build scalar embeddings that are not trained: the j-th kind opens with j and closes with -j.

    Args:
        kinds: Number of kinds of brackets (k).

    Returns:
        Embeddings of the 2k brackets, the opening ones first.

    Raises:
        UsageError: ``kinds`` is not a positive integer.
    """
    opening = torch.arange(1.0, checked_size("kinds", kinds) + 1)
    return nn.Embedding.from_pretrained(torch.cat((opening, -opening))[:, None])


def learned_brackets(kinds: int, size: int) -> nn.Embedding:
    """Build random embeddings that are trained.

    Args:
        kinds: Number of kinds of brackets (k).
        size: Number of dimensions; in the paper two are enough and one does not converge.

    Returns:
        Embeddings of the 2k brackets, the opening ones first.

    Raises:
        UsageError: ``kinds`` or ``size`` is not a positive integer.
    """
    size = checked_size("size", size)
    return nn.Embedding(2 * checked_size("kinds", kinds), size)


class NextBracketModel(nn.Module):
    """Give the logits of the next bracket after every prefix of a string of brackets.

    Args:
        embedding: Embeddings of the 2k brackets, the opening ones first.
        encoder: A batch-first network with the interface of ``torch.nn.RNN``.
        head: From a state to the logits. It reads the first ``head.in_features`` features of the state, so that it can
            read only the top of a stack.
        dropout: Dropout probability of the features that the head reads.

    Raises:
        UsageError: The encoder reads ahead.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.Module, head: nn.Linear, dropout: float = 0.0) -> None:
        super().__init__()
        if reads_ahead(encoder, embedding.embedding_dim):
            raise UsageError(
                "the encoder reads ahead, so it sees the bracket that it must predict; expected an encoder that reads "
                "from left to right: bidirectional=false, and for a transformer causal=true"
            )
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.dropout = nn.Dropout(dropout)

    def forward(self, brackets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute logits, shape (batch, time, outputs), from bracket indices, shape (batch, time)."""
        states = run_encoder(self.encoder, self.embedding(brackets), lengths)
        return self.head(self.dropout(states[..., : self.head.in_features]))


def dyck_rnn(embedding: nn.Embedding, depth: int) -> NextBracketModel:
    """Build the Dyck-RNN's model of the closing bracket, with the logits of the k closing brackets.

    Args:
        embedding: Embeddings of the 2k brackets.
        depth: The maximum nesting depth of the brackets, which is the number of slots of the stack (m).

    Returns:
        The model.

    Example:
        >>> model = dyck_rnn(fixed_brackets(2), depth=4)
        >>> sum(p.numel() for p in model.parameters() if p.requires_grad)
        5
    """
    size = embedding.embedding_dim
    stack = Recurrent(Dyck, size, size * depth, batch_first=True)
    return NextBracketModel(embedding, stack, nn.Linear(size, embedding.num_embeddings // 2))
