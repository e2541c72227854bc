"""Classify the relation between two entities that are marked in a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import Field
from torch import nn
from torch.nn import functional as F

from unrolled.lab.data.batches.texts import TextBatch
from unrolled.lab.data.corpus import Relations
from unrolled.lab.data.tokenise import tokenise_marked
from unrolled.lab.metrics.relation_f1 import OTHER, relation_f1
from unrolled.lab.models.factory import PooledSettings
from unrolled.lab.training.task import Metric
from unrolled.lab.training.text_tasks import TextClassification

__all__ = ["Relate", "RelateSettings"]


class RelateSettings(PooledSettings):
    """What reads a text with two marked entities into one vector."""

    encoder: str = "lstm"
    """The recurrent network: rnn, gru or lstm are torch.nn's; any cell or n-gram model of the zoo."""
    embedding: int = Field(50, ge=1)
    """Size of the token vectors; 50 is that of GloVe's smallest."""
    bidirectional: bool = True
    """Read from both ends."""
    pooling: str = "max"
    """What is read out: the last state, or the mean, max or attention over all."""


class Relate(TextClassification[Relations]):
    """Say how two entities are related: a classifier to which their markers are words like all others.

    Source:
        Zhou et al. (2016), section 3.5, for markers as words. https://aclanthology.org/P16-2034
    """

    name = "relate"
    description = "relations between two marked entities"
    kind = Relations
    Architecture = RelateSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 0.002, "batch": 32, "clip": 5.0, "epochs": 20}
    metrics = (
        Metric(
            "f1",
            f"macro-averaged over the relations of the split without {OTHER}, a wrong direction is wrong: "
            "SemEval-2010's official (9+1)-way score",
        ),
        Metric("accuracy", f"the share of texts whose relation and direction are right, {OTHER} among them"),
        Metric("loss", "mean cross-entropy of a text", higher_is_better=False, unit="nats"),
    )

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Cut a text, each marker a token of its own."""
        return tokenise_marked(text)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        """Compare the names of the relations."""
        truths: list[str] = []
        answers: list[str] = []
        loss = 0.0
        for batch in batches:
            logits = model(batch.tokens, batch.lengths)
            loss += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            truths += [self.labels[label] for label in batch.labels.tolist()]
            answers += [self.labels[label] for label in logits.argmax(dim=-1).tolist()]
        right = sum(truth == answer for truth, answer in zip(truths, answers, strict=True))
        return {
            "f1": relation_f1(truths, answers),
            "accuracy": right / len(truths),
            "loss": loss / len(truths),
        }
