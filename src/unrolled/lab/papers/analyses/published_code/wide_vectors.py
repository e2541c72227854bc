"""Word vectors that start from N(0, 1), as torch.nn draws them, or from U(-0.1, 0.1); our own tasks draw N(0, 0.01).

Source:
    The published code of Implicit n-grams: https://github.com/richardsun-voyager/inibr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import nn

from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.relate import Relate

if TYPE_CHECKING:
    from unrolled.lab.models.classifier import Classifier

__all__ = ["WideClassify", "WideRelate", "narrowed"]


class WideClassify(Classify):
    """Classes of texts, by word vectors from N(0, 1)."""

    def build(self) -> Classifier:
        """Draw the word vectors as torch.nn does."""
        return _widened(super().build())


class WideRelate(Relate):
    """Relations, by word vectors from N(0, 1)."""

    def build(self) -> Classifier:
        """Draw the word vectors as torch.nn does."""
        return _widened(super().build())


def narrowed(model: Classifier) -> Classifier:
    """Draw the word vectors from U(-0.1, 0.1)."""
    nn.init.uniform_(cast("nn.Embedding", model.embedding).weight, -0.1, 0.1)
    return model


def _widened(model: Classifier) -> Classifier:
    cast("nn.Embedding", model.embedding).reset_parameters()
    return model
