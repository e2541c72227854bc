"""A tagger: embedding, encoder, emissions, tags."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.errors import UsageError
from unrolled.lab.models.classifier import WordDropout
from unrolled.lab.models.run_encoder import check_tokens, run_encoder
from unrolled.lab.models.tag_output import TagOutput

__all__ = ["Tagger"]


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
