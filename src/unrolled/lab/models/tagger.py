"""A tagger: embedding, encoder, emissions, tags; and any model of every position read at one of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.errors import UsageError
from unrolled.lab.models.classifier import WordDropout
from unrolled.lab.models.run_encoder import check_tokens, run_encoder
from unrolled.lab.models.tag_output import TagOutput

__all__ = ["OutputAtPosition", "Tagger", "checked_position"]


class OutputAtPosition(nn.Module):
    """Return the output of a model at one position, as if the model classified the sequence.

    Args:
        model: A model with outputs of shape (batch, time, outputs).
        position: The position, from 0; negative positions count from the end.
    """

    def __init__(self, model: nn.Module, position: int) -> None:
        super().__init__()
        self.model = model
        self.position = position

    def forward(self, *inputs: Tensor) -> Tensor:
        """Call the model; return shape (batch, outputs)."""
        return self.model(*inputs)[:, self.position]


def checked_position(tokens: Sequence[str], at: int | None) -> int:
    """Check a position that a user asks for, from 0; None is the last.

    Raises:
        UsageError: There are no tokens, or the position is outside them.
    """
    if not tokens:
        raise UsageError("the sentence is empty; expected at least one word")
    if at is None:
        return len(tokens) - 1
    if not 0 <= at < len(tokens):
        raise UsageError(f"at is {at}; expected 0 to {len(tokens) - 1}, a token of: {' '.join(tokens)}")
    return at


class Tagger(nn.Module):
    r"""Compute the emissions: a score for every tag at every token.

    .. math:: e_t = W h_t + b, \quad h = \mathrm{encoder}([E_{x_1}; S_{s_1}], \dots, [E_{x_T}; S_{s_T}])

    with s_t the shape of the word x_t, if the tagger reads word shapes. `explain` opens the emissions; ``output`` turns
    them into tags.

    Args:
        embedding: From word indices to vectors.
        encoder: A batch-first network with the interface of ``torch.nn.RNN``.
        head: From a context to the emissions.
        output: From emissions to tags, also an ``nn.Module``.
        shapes: From indices of word shapes to vectors; None if the tagger does not read word shapes.
        dropout: Dropout probability of the features of token vectors and of contexts.
        word_dropout: Probability that training replaces a word by ``<unk>``; its shape stays.

    Source:
        Lample et al. (2016), arXiv:1603.01360, sections 2 and 5, with the word shapes of Collobert et al. instead of
        characters; Implicit n-grams, appendix E.3, has neither.
    """

    def __init__(
        self,
        embedding: nn.Module,
        encoder: nn.Module,
        head: nn.Module,
        output: TagOutput,
        shapes: nn.Embedding | None = None,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.shapes = shapes
        self.encoder = encoder
        self.head = head
        self.output = output
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None, shapes: Tensor | None = None) -> Tensor:
        """Compute the emissions.

        Args:
            tokens: Word indices, shape (batch, time), int64.
            lengths: Number of tokens of each sequence, shape (batch,); the full time when omitted.
            shapes: Indices of word shapes, shape (batch, time), int64; required if the tagger reads them.

        Returns:
            Shape (batch, time, tags).

        Raises:
            ShapeError: The tokens have another shape.
            UsageError: The tagger reads word shapes, and ``shapes`` is missing.
        """
        check_tokens("tokens", tokens)
        vectors = self.embedding(self.word_dropout(tokens))
        if self.shapes is not None:
            if shapes is None:
                raise UsageError("shapes is missing; expected the indices of word shapes, which this tagger reads")
            vectors = torch.cat((vectors, self.shapes(shapes)), dim=-1)
        return self.head(self.dropout(run_encoder(self.encoder, self.dropout(vectors), lengths)))
