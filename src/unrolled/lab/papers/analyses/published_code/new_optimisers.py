"""Training with a new optimiser in each epoch, as the published code of Implicit n-grams does.

Each epoch is a training of its own, which starts from the weights of the one before.

Source:
    The notebooks of https://github.com/richardsun-voyager/inibr, read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.papers.analyses.published_code.wide_vectors import WideClassify, narrowed
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.trial_training import train_task
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.text_tasks import TextClassification

if TYPE_CHECKING:
    from unrolled.lab.models.classifier import Classifier

__all__ = ["Continuing", "ContinuingClassify", "NarrowContinuingClassify", "WideContinuingClassify"]


class Continuing(TextClassification[Any]):
    """A task whose model starts from drawn weights, or from those of another model."""

    begun: Classifier | None = None
    """The model whose weights the next one starts from."""

    def build(self) -> Classifier:
        """Draw the weights, or copy those of another model."""
        model = self.draw()
        if self.begun is not None:
            model.load_state_dict(self.begun.state_dict())
        return model

    def draw(self) -> Classifier:
        """Draw the weights."""
        return super().build()

    @classmethod
    def train_by_epochs(
        cls, setup: TrialSetup, _: str, corpus: Corpus[Any], model: Mapping[str, Any], training: Mapping[str, Any]
    ) -> Run:
        """Train each epoch with a new optimiser, and return the run of the epoch that is best on dev.

        The best is the highest in the first metric of the task.
        """
        task = cls.from_corpus(corpus, cls.Architecture(**model))
        epochs, best, metric = training["epochs"], None, f"dev_{cls.metrics[0].name}"
        for number in range(1, epochs + 1):
            settings = {**cls.training_defaults, **training, "epochs": 1, "seed": training["seed"] * epochs + number}
            run = train_task(setup, task, corpus, settings, name=f"epoch {number}")
            if best is None or run.metrics[metric] > best.metrics[metric]:
                best = replace(run, metrics={**run.metrics, "best_epoch": number, "epochs": epochs})
            task.begun = cast("Classifier", run.model)
        assert best is not None
        return best


class ContinuingClassify(Continuing, Classify):
    """Classes of texts, epoch by epoch."""


class WideContinuingClassify(Continuing, WideClassify):
    """Classes of texts by word vectors from N(0, 1), epoch by epoch."""


class NarrowContinuingClassify(ContinuingClassify):
    """Classes of texts by word vectors from U(-0.1, 0.1), epoch by epoch."""

    def draw(self) -> Classifier:
        """Draw the weights."""
        return narrowed(super().draw())
