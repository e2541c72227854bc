"""Word vectors that start from N(0, 1), as torch.nn draws them, or from U(-0.1, 0.1); our own tasks draw N(0, 0.01).

Source:
    The published code of Implicit n-grams: https://github.com/richardsun-voyager/inibr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.trial_training import train_model
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.relate import Relate
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.text_tasks import TextClassification

if TYPE_CHECKING:
    from unrolled.lab.models.classifier import Classifier

__all__ = ["WideClassify", "WideRelate", "narrowed", "train_wide"]


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


_WIDE: Mapping[str, type[TextClassification[Any]]] = {"classify": WideClassify, "relate": WideRelate}


def train_wide(
    setup: TrialSetup, task: str, corpus: Corpus[Any], model: Mapping[str, Any], training: Mapping[str, Any]
) -> Run:
    """Train a model as ``trial_training.train_model`` does, from wide word vectors, for "classify" or "relate"."""
    return train_model(setup, _WIDE[task], corpus, model, training)


def narrowed(model: Classifier) -> Classifier:
    """Draw the word vectors from U(-0.1, 0.1)."""
    nn.init.uniform_(cast("nn.Embedding", model.embedding).weight, -0.1, 0.1)
    return model


def _widened(model: Classifier) -> Classifier:
    cast("nn.Embedding", model.embedding).reset_parameters()
    return model
