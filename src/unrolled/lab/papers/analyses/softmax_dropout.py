"""Language models that drop features at the input of the softmax alone.

Ours drop features of word vectors too, and those between layers.

Source:
    Second-order RNNs, section 5: "a dropout of 0.25 to the hidden state before passing it through the softmax".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from unrolled.lab.models.softmax import SoftmaxLayer
from unrolled.lab.tasks.lm import LanguageModelling

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.lab.models.language_model import LanguageModel

__all__ = ["SOFTMAX_DROPOUT", "SoftmaxDropoutModelling"]

SOFTMAX_DROPOUT = 0.25
"""Dropout probability of the features that the softmax reads."""


class _WithDropout(SoftmaxLayer):
    """Drops features, then reads the others with another layer."""

    def __init__(self, layer: SoftmaxLayer) -> None:
        super().__init__()
        self.layer = layer
        self.dropout = nn.Dropout(SOFTMAX_DROPOUT)

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        return self.layer.scores(self.dropout(features), vectors)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        return self.layer.loss(self.dropout(features), targets, vectors)


class SoftmaxDropoutModelling(LanguageModelling):
    """Predict the next word; only the softmax's input has dropout if the architecture has none."""

    def build(self) -> LanguageModel:
        """Draw the same weights as the task does, and put dropout before the softmax."""
        model = super().build()
        model.head = _WithDropout(model.head)
        return model
