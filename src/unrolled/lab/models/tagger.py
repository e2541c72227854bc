"""A tagger: embedding, recurrent encoder, linear emissions, and tags out of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.run_encoder import run_encoder
from unrolled.lab.models.tag_output import TagOutput
from unrolled.lab.models.word_dropout import WordDropout

__all__ = ["Tagger"]


class Tagger(nn.Module):
    r"""Score every tag at every token.

    .. math:: e_t = W h_t + b, \quad h = \mathrm{encoder}([E_{x_1}; S_{s_1}], \dots, [E_{x_T}; S_{s_T}])

    with s_t the shape of the word x_t, where shapes are read. Calling it gives the emissions, which is what is opened;
    ``output`` makes tags of them.

    Args:
        embedding: from word indices to vectors.
        encoder: a batch-first network with the interface of ``torch.nn.RNN``.
        head: from a context to the emissions.
        output: from emissions to tags, an ``nn.Module`` too.
        shapes: from the indices of word shapes to vectors; they are not read when left out.
        dropout: the share of the features of token vectors and of contexts dropped in training.
        word_dropout: the share of words read as ``<unk>`` in training; their shape is still seen.

    Source:
        Lample et al. (2016), arXiv:1603.01360, sections 2 and 5, with the shapes of Collobert et al. in the place of
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
        """Give the emissions.

        Args:
            tokens: word indices, shape (batch, time), int64.
            lengths: how many tokens each sentence has, shape (batch,); all of them when left out.
            shapes: word shapes, shape (batch, time), int64, if the tagger reads them.

        Returns:
            Shape (batch, time, tags).

        Raises:
            ShapeError: when tokens have another shape.
            UsageError: when the tagger reads shapes, and none came.
        """
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")
        vectors = self.embedding(self.word_dropout(tokens))
        if self.shapes is not None:
            if shapes is None:
                raise UsageError("no word shapes came; expected them, as this tagger reads them")
            vectors = torch.cat((vectors, self.shapes(shapes)), dim=-1)
        return self.head(self.dropout(run_encoder(self.encoder, self.dropout(vectors), lengths)))
