"""Classify whole texts."""

from __future__ import annotations

from unrolled.lab.data.corpus import Classification
from unrolled.lab.training.task import Metric
from unrolled.lab.training.text_tasks import TextClassification

__all__ = ["Classify"]


class Classify(TextClassification[Classification]):
    """Predict the class of a text: embedding, encoder, pooling, linear head."""

    name = "classify"
    description = "classes of texts: sentiment, topics"
    kind = Classification
    metrics = (
        Metric("accuracy", "share of texts with the right class"),
        Metric("loss", "mean cross-entropy of a text", higher_is_better=False, unit="nats"),
    )
