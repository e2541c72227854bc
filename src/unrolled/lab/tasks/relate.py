"""Relation classification: the relation between two entities that are marked in a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Example, Relations
from unrolled.lab.data.tokenise import tokenise_marked
from unrolled.lab.metrics.relation_f1 import OTHER, relation_f1
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.training.task import Metric
from unrolled.lab.training.text_tasks import TextClassification

if TYPE_CHECKING:
    from unrolled.lab.data.batches.base import EncodedTexts

__all__ = ["Relate", "RelateSettings"]


class RelateSettings(PooledSettings):
    """Settings of a relation classifier."""

    encoder: str = "lstm"
    """Encoder: rnn, gru or lstm of torch.nn, or any cell or n-gram model of the library."""
    embedding: int = Field(50, ge=1)
    """Size of the word vectors; 50 is the smallest size of GloVe's."""
    bidirectional: bool = True
    """Bidirectional encoder."""
    pooling: str = "max"
    """Pooling of the states: last, ends, mean, max or attention."""


class Relate(TextClassification[Relations]):
    """Predict the relation of two entities: a text classifier that reads their markers as words.

    Source:
        Zhou et al. (2016), section 3.5, for markers as words. https://aclanthology.org/P16-2034
    """

    name = "relate"
    description = "relations between two marked entities"
    kind = Relations
    Architecture = RelateSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 0.002, "batch": 32, "clip": 5.0, "epochs": 20}
    metrics: tuple[Metric, ...] = (
        Metric(
            "f1",
            f"macro F1 over the relations of the split without {OTHER}; a wrong direction is an error: "
            "SemEval-2010's official (9+1)-way score",
        ),
        Metric("accuracy", f"share of texts with the right relation and direction, {OTHER} included"),
        Metric("loss", "mean cross-entropy of a text", higher_is_better=False, unit="nats"),
    )

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split a text with ``<e1>…</e1>`` and ``<e2>…</e2>`` into tokens; each marker is one token."""
        return tokenise_marked(text)

    def encode(self, examples: Sequence[Example]) -> EncodedTexts:
        """Encode the words; at least one text must have a relation, because the F1 does not count the others."""
        encoded = super().encode(examples)
        if all(self.labels[example.label] == OTHER for example in examples):
            raise DataError(f"none of {len(examples)} texts has a relation other than {OTHER}; at least one must")
        return encoded

    def scores(self, truths: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
        return {"f1": relation_f1(truths, answers), **super().scores(truths, answers)}
