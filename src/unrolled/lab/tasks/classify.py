"""Classify whole texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unrolled.lab.data.corpus import Classification
from unrolled.lab.training.task import Metric
from unrolled.lab.training.text_tasks import TextClassification

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.data.batches.base import TextBatch

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

    def compute_metrics(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        from torch.nn import functional as F

        right, loss, seen = 0, 0.0, 0
        for batch in batches:
            logits = model(batch.tokens, batch.lengths)
            right += int((logits.argmax(dim=-1) == batch.labels).sum())
            loss += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            seen += len(batch)
        return {"accuracy": right / seen, "loss": loss / seen}
