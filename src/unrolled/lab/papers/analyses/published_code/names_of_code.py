"""Named entities as the authors' published code of Implicit n-grams learns them.

Word vectors start from N(0, 1), and dropout drops their features only; the tagger of this library drops those of
contexts as well. The code's VA-W has a matrix for each place in a block, and reads each word alone.

Source:
    linear_crf.py and the notebook RNN_NER_CRF_IOBES of https://github.com/richardsun-voyager/inibr, read and not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn
from torch.nn.functional import dropout

from unrolled.lab.papers.analyses.published_code.block_weights import PlaceWeights
from unrolled.lab.tasks.tag import Tag

if TYPE_CHECKING:
    from unrolled.composition.vector_additive import VAWEncoder
    from unrolled.lab.models.tagger import Tagger

__all__ = ["DroppedVectorNames", "NamesByPlace", "NamesOfCode", "WideNames"]


class WideNames(Tag):
    """Entities by word vectors from N(0, 1)."""

    def build(self) -> Tagger:
        """Draw the word vectors as torch.nn does."""
        model = super().build()
        cast("nn.Embedding", model.embedding).reset_parameters()
        return model


class DroppedVectorNames(Tag):
    """Entities by a network that drops features of word vectors only."""

    def build(self) -> Tagger:
        """Move dropout to the word vectors."""
        model = super().build()
        vectors, rate = cast("nn.Embedding", model.embedding), model.dropout.p
        vectors.register_forward_hook(lambda module, _, read: dropout(cast("Tensor", read), rate, module.training))
        model.dropout = nn.Dropout(0.0)
        return model


class NamesOfCode(DroppedVectorNames, WideNames):
    """Entities by word vectors from N(0, 1), whose features alone are dropped."""


class NamesByPlace(NamesOfCode):
    """The same by the network that the code calls VA-W; a block is the window of VA-W."""

    def build(self) -> Tagger:
        """Draw the matrices of the places as the code does."""
        model = super().build()
        encoder = cast("VAWEncoder", model.encoder)
        model.encoder = PlaceWeights(encoder.input_size, encoder.output_size, encoder.window)
        nn.init.uniform_(model.encoder.weight, -0.1, 0.1)
        return model
