"""Relations as the authors' published code of Implicit n-grams learns them: nineteen classes and wide word vectors.

The code makes a new optimiser in each epoch. ``train_by_epochs`` does that; ``train_model`` has one for all.

Source:
    The notebook RNN_relation_classification(semeval2010-8) of https://github.com/richardsun-voyager/inibr, read and not
    run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from unrolled.lab.papers.analyses.published_code.block_weights import BlockWeights
from unrolled.lab.papers.analyses.published_code.new_optimisers import Continuing
from unrolled.lab.papers.analyses.published_code.wide_vectors import WideRelate, narrowed
from unrolled.lab.tasks.relate import Relate
from unrolled.lab.training.task import Metric

if TYPE_CHECKING:
    from unrolled.composition.vector_additive import VAWEncoder
    from unrolled.lab.models.classifier import Classifier

__all__ = ["AllClasses", "ByPlaces", "NarrowVectors"]


class AllClasses(Continuing, WideRelate):
    """Relations with word vectors from N(0, 1), whose best epoch is that of the highest macro F1 over all classes."""

    metrics = (
        Metric("all_f1", "macro F1 over all classes of the split or the answers, Other included"),
        *Relate.metrics,
    )

    def scores(self, truths: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
        """Score the labels over all classes as well."""
        from sklearn.metrics import f1_score

        return {"all_f1": float(f1_score(truths, answers, average="macro")), **super().scores(truths, answers)}


class NarrowVectors(AllClasses):
    """The same, with word vectors from U(-0.1, 0.1)."""

    def draw(self) -> Classifier:
        """Draw the weights."""
        return narrowed(super().draw())


class ByPlaces(NarrowVectors):
    """Relations by :class:`BlockWeights`, the network of the code that is like VA-W; a block is the window of VA-W."""

    def draw(self) -> Classifier:
        """Draw the weights as the code does."""
        model = super().draw()
        encoder = cast("VAWEncoder", model.encoder)
        model.encoder = BlockWeights(encoder.input_size, encoder.output_size, encoder.window)
        return model
