"""Bracket prediction in strings of the bounded Dyck language."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from unrolled.lab.data.corpus import Brackets
from unrolled.lab.data.formats.brackets import bracket_pairs
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.training.record_fields import read_count
from unrolled.lab.training.task import HiddenState, Loss, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.labelled_sequences import BracketBatch, EncodedBrackets
    from unrolled.lab.models.brackets import NextBracketModel

__all__ = ["BracketSettings", "CloseBrackets"]

_STACK = "dyck"


class BracketSettings(EncoderSettings):
    """Settings of a bracket model."""

    encoder: str = _STACK
    """Encoder: rnn, gru or lstm of torch.nn, or any cell or n-gram model of the library."""
    embedding: int = Field(0, ge=0)
    """Size of the bracket vectors; 0 for fixed numbers: j opens the j-th kind and -j closes it."""
    hidden: int = Field(0, ge=0)
    """Size of the state; 0 for the Dyck-RNN's m stack slots, or Hewitt's 3 m log2(k) - m for other encoders."""
    dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Dropout: share of features set to 0 in training."""
    predict: Literal["closing", "next"] = "closing"
    """Predict the kind of each closing bracket, or every next symbol and the end, as in Hewitt et al."""


class CloseBrackets(Task[Brackets, "BracketBatch"]):
    """Predict closing brackets: embedding, encoder, linear head; by default the Dyck-RNN of five parameters.

    Metrics count closing brackets only, and use the probabilities of closing brackets only. The best epoch has the
    smallest loss, since WCPA stays 0 until almost all distances are learned. The learning rate suits the Dyck-RNN;
    give other encoders a tenth of it or less.

    Source:
        Second-order RNNs, sections 4.2 and 5.2; Hewitt et al. (2020), arXiv:2010.07515, who evaluate wherever a bracket
        is open and average over distances. The first symbol of a string is not predicted.
    """

    name = "brackets"
    description = "closing brackets of nested strings: the bounded Dyck language"
    kind = Brackets
    Architecture = BracketSettings
    architecture: BracketSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 0.1, "warmup": 1000, "epochs": 30}
    metrics = (
        Metric("loss", "mean cross-entropy of a prediction", higher_is_better=False, unit="nats"),
        Metric("wcpa", "worst case over distances: smallest share with at least 0.8 of the closing probability"),
        Metric("by_distance", "mean over distances of the share with at least 0.8 of the closing probability"),
        Metric("accuracy", "share of closing brackets that are the most likely closing bracket"),
    )

    def __init__(self, architecture: BracketSettings, kinds: int, depth: int) -> None:
        super().__init__(architecture)
        self.kinds = kinds
        self.depth = depth

    @classmethod
    def from_corpus(cls, corpus: Brackets, architecture: BracketSettings) -> Self:
        """Take the number of kinds k and the depth m of the language."""
        return cls(architecture, corpus.kinds, corpus.depth)

    def to_record(self) -> Mapping[str, Any]:
        return {"kinds": self.kinds, "depth": self.depth}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: BracketSettings) -> Self:
        return cls(architecture, read_count(record, "kinds"), read_count(record, "depth"))

    @property
    def classes(self) -> tuple[str, ...]:
        """The kinds of brackets, as written in files."""
        return bracket_pairs(self.kinds)

    def build(self) -> NextBracketModel:
        from torch import nn

        from unrolled.lab.models.brackets import NextBracketModel, fixed_brackets, learned_brackets
        from unrolled.lab.models.factory import feature_count, make_encoder

        chosen = self._complete()
        size = chosen.embedding
        by_hand = not self.architecture.embedding
        return NextBracketModel(
            embedding=fixed_brackets(self.kinds) if by_hand else learned_brackets(self.kinds, size),
            encoder=make_encoder(chosen, size),
            head=nn.Linear(
                size if chosen.encoder == _STACK else feature_count(chosen),
                self.kinds if chosen.predict == "closing" else 2 * self.kinds + 1,
            ),
            dropout=chosen.dropout,
        )

    def _complete(self) -> BracketSettings:
        """Fill in the sizes that are 0, from the language."""
        chosen = self.architecture
        size = chosen.embedding or 1
        hewitt = round(3 * self.depth * math.log2(max(2, self.kinds))) - self.depth
        options = {"causal": True, **chosen.options} if chosen.encoder == "transformer" else chosen.options
        hidden = chosen.hidden or (size * self.depth if chosen.encoder == _STACK else hewitt)
        return chosen.model_copy(update={"embedding": size, "hidden": hidden, "options": options})

    def encode(self, examples: Sequence[Sequence[int]]) -> EncodedBrackets:
        from unrolled.lab.data.batches.labelled_sequences import EncodedBrackets

        return EncodedBrackets.encode(examples, self.kinds, self.depth)

    def loss(self, model: nn.Module, batch: BracketBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the targets."""
        return self._cost(model(batch.brackets, batch.lengths), batch, state)

    def _cost(self, logits: Tensor, batch: BracketBatch, state: HiddenState) -> Loss:
        from torch.nn import functional as F

        from unrolled.lab.data.batches.labelled_sequences import IGNORE_INDEX

        targets = self._targets(batch)
        asked = targets != IGNORE_INDEX
        return Loss(F.cross_entropy(logits[asked], targets[asked], reduction="sum"), int(asked.sum()), state)

    def _targets(self, batch: BracketBatch) -> Tensor:
        """What is right after each bracket, IGNORE_INDEX where it is not asked for, shape (batch, time)."""
        from unrolled.lab.data.batches.labelled_sequences import IGNORE_INDEX
        from unrolled.lab.models.padding_mask import padding_mask

        if self.architecture.predict == "closing":
            return batch.closing
        following = batch.brackets.roll(-1, dims=1).scatter(1, batch.lengths[:, None] - 1, 2 * self.kinds)
        return following.masked_fill(padding_mask(batch.brackets, batch.lengths), IGNORE_INDEX)

    def compute_metrics(self, model: nn.Module, batches: Iterable[BracketBatch]) -> dict[str, float]:
        import torch

        from unrolled.lab.metrics.worst_case import accuracy_by_distance

        loss, predictions = 0.0, 0
        asked: list[tuple[Tensor, Tensor, Tensor]] = []
        for batch in batches:
            logits = model(batch.brackets, batch.lengths)
            cost = self._cost(logits, batch, ())
            loss, predictions = loss + cost.total.item(), predictions + cost.count
            asked.append(self._closing(logits, batch))
        logits, closing, distances = (torch.cat(each) for each in zip(*asked, strict=True))
        shares = accuracy_by_distance(logits, closing, distances).values()
        return {
            "loss": loss / predictions,
            "wcpa": min(shares),
            "by_distance": sum(shares) / len(shares),
            "accuracy": (logits.argmax(dim=-1) == closing).double().mean().item(),
        }

    def distances(self, model: nn.Module, batches: Iterable[BracketBatch]) -> dict[int, float]:
        """Compute the share of closing brackets with at least 0.8 of the probability, by distance."""
        import torch

        from unrolled.lab.metrics.worst_case import accuracy_by_distance

        asked = [self._closing(model(batch.brackets, batch.lengths), batch) for batch in batches]
        return accuracy_by_distance(*(torch.cat(each) for each in zip(*asked, strict=True)))

    def details(self, model: nn.Module, batches: Iterable[BracketBatch]) -> tuple[str, ...]:
        """Return a table of the accuracy by ranges of distances."""
        from unrolled.lab.metrics.worst_case import CONFIDENT, group_distances

        rows = [
            (f"{each.first}–{each.last}" if each.last > each.first else f"{each.first}", each.mean, each.least)
            for each in group_distances(self.distances(model, batches))
        ]
        return (
            f"the share of closing brackets that get at least {CONFIDENT}, by the distance from what they close:",
            f"{'distance':>10} {'mean':>8} {'least':>8}",
            *(f"{distances:>10} {mean:8.2%} {least:8.2%}" for distances, mean, least in rows),
        )

    def _closing(self, logits: Tensor, batch: BracketBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Where a bracket closes: the logits of all closing brackets, the right one and the distance."""
        from unrolled.lab.data.batches.labelled_sequences import IGNORE_INDEX

        if self.architecture.predict == "next":
            logits = logits[..., self.kinds : 2 * self.kinds]
        closes = batch.closing != IGNORE_INDEX
        return logits[closes], batch.closing[closes], batch.distances[closes]
