"""Regression: predict a number for a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

from unrolled.errors import DataError
from unrolled.lab.data.corpus import RatedText, Regression
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.training.record_fields import read_number
from unrolled.lab.training.task import HiddenState, Loss, Metric
from unrolled.lab.training.text_tasks import TextTask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.base import EncodedTexts, TextBatch
    from unrolled.lab.models.classifier import Classifier

__all__ = ["Regress"]


_LARGEST = (2 - 2.0**-23) * 2.0**127  # of float32
_LEAST_SPREAD = 1e-30  # its square is not 0 in float32
_RESOLUTION = 2.0**-23  # of float32


class Regress(TextTask[Regression]):
    """Predict the rating of a text: embedding, encoder, pooling, linear head; its bias starts at the mean rating.

    The loss is the squared error in a unit that is a power of ten: 1 if the ratings have a standard deviation between
    0.1 and 10, 100,000 for prices of some hundred thousand. Metrics and predictions are in the unit of the ratings.

    Source:
        Implicit n-grams, appendix E.1, for SST-5 as a regression.
    """

    name = "regress"
    description = "a number for each text: how strong a sentiment is"
    kind = Regression
    metrics = (
        Metric("mse", "mean squared error of a rating", higher_is_better=False, unit=""),
        Metric("mae", "mean absolute error of a rating", higher_is_better=False, unit=""),
        Metric("pearson", "Pearson's correlation of predictions and ratings", unit=""),
    )

    def __init__(self, architecture: PooledSettings, vocabulary: Vocabulary, mean: float, unit: float = 1.0) -> None:
        super().__init__(architecture, vocabulary)
        self.mean = mean
        self.unit = unit

    @property
    def outputs(self) -> tuple[str, ...]:
        """The only output."""
        return ("rating",)

    @property
    def loss_name(self) -> str:
        """The training's loss is the mean squared error in the task's own unit."""
        return super().loss_name if self.unit == 1 else f"train loss (mse / {self.unit**2:g})"

    @classmethod
    def from_corpus(cls, corpus: Regression, architecture: PooledSettings) -> Self:
        """Collect the lower-cased words of the training texts, their mean rating and its unit."""
        words = Vocabulary.from_texts((example.tokens for example in corpus.train), lowercase=True)
        ratings = _finite(corpus.train)
        mean = fmean(ratings)
        spread = math.sqrt(fmean((rating - mean) ** 2 for rating in ratings))
        if 0 < spread < max(_LEAST_SPREAD, 10 * _RESOLUTION * abs(mean)):
            raise DataError(
                f"the ratings have the mean {mean:.6g} and the standard deviation {spread:.2g}, which float32 cannot "
                "tell apart; subtract a constant from all ratings, or multiply them by one"
            )
        usual = not spread or 0.1 <= spread < 10
        return cls(architecture, words, mean, 1.0 if usual else 10.0 ** math.floor(math.log10(spread)))

    def to_record(self) -> Mapping[str, Any]:
        return {"vocabulary": self.vocabulary.to_record(), "mean": self.mean, "unit": self.unit}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: PooledSettings) -> Self:
        unit = read_number(record, "unit") if "unit" in record else 1.0  # runs of earlier versions have none
        if unit <= 0:
            raise DataError(f"unit is {unit:g}; expected a positive number")
        return cls(architecture, Vocabulary.from_record(record.get("vocabulary")), read_number(record, "mean"), unit)

    def build(self) -> Classifier:
        from functools import partial

        from torch import nn

        from unrolled.lab.models.factory import make_classifier
        from unrolled.lab.models.rating_head import RatingHead

        head = partial(RatingHead, unit=self.unit)
        model = make_classifier(self.architecture, len(self.vocabulary), outputs=1, head=head)
        assert isinstance(model.head, RatingHead)
        nn.init.constant_(model.head.bias, self.mean / self.unit)
        return model

    def encode(self, examples: Sequence[RatedText]) -> EncodedTexts:
        """Encode the words; ratings must be finite in float32."""
        import torch

        from unrolled.lab.data.batches.base import EncodedTexts

        ratings = torch.tensor(_finite(examples)).tolist()  # as float32 holds them
        return EncodedTexts.encode([example.tokens for example in examples], ratings, self.vocabulary)

    def loss(self, model: nn.Module, batch: TextBatch, state: HiddenState) -> Loss:
        from torch.nn import functional as F

        predicted, ratings = _predict(model, batch) / self.unit, batch.labels / self.unit
        return Loss(F.mse_loss(predicted, ratings, reduction="sum"), len(batch), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        import torch

        from unrolled.lab.metrics.pearson import pearson

        pairs = [(_predict(model, batch), batch.labels) for batch in batches]
        predictions, ratings = (torch.cat(each).double() for each in zip(*pairs, strict=True))
        errors = predictions - ratings
        return {
            "mse": errors.square().mean().item(),
            "mae": errors.abs().mean().item(),
            "pearson": pearson(predictions, ratings),
        }


def _finite(examples: Sequence[RatedText]) -> list[float]:
    """Return the ratings; refuse one that float32 does not hold."""
    for number, example in enumerate(examples, start=1):
        if not abs(example.rating) <= _LARGEST:  # neither is NaN
            raise DataError(f"text {number} has the rating {example.rating}; expected a finite float32 number")
    return [example.rating for example in examples]


def _predict(model: nn.Module, batch: TextBatch) -> Tensor:
    return model(batch.tokens, batch.lengths)[:, 0]
