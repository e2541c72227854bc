"""Base classes of the tasks whose models have one output for a whole text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Classification, Corpus, Example
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.training.record_fields import read_names
from unrolled.lab.training.task import HiddenState, Loss, PreparedText
from unrolled.lab.training.vocabulary_task import VocabularyTask

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.data.batches.base import EncodedTexts, TextBatch
    from unrolled.lab.models.classifier import Classifier

__all__ = ["TextClassification", "TextTask"]

C = TypeVar("C", bound=Corpus[Any])
D = TypeVar("D", bound=Classification)


class TextTask(VocabularyTask[C, "TextBatch"]):
    """A task whose model encodes a text as one vector."""

    Architecture = PooledSettings
    architecture: PooledSettings

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Names of the model's outputs."""

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split a text that a person typed into tokens."""
        return tuple(tokenise(text))

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare a whole text; there is no position to choose."""
        import torch

        self.check_no_position(at)
        tokens = self.tokenise(text)
        if not tokens:
            raise UsageError("the sentence is empty; give at least one word")
        inputs = (torch.tensor([self.vocabulary.encode(tokens)]),)
        return PreparedText(model, inputs, tokens, self.outputs, self.vocabulary.unknown(tokens))


class TextClassification(TextTask[D]):
    """Classify texts."""

    def __init__(self, architecture: PooledSettings, vocabulary: Vocabulary, labels: Sequence[str]) -> None:
        super().__init__(architecture, vocabulary)
        self.labels = tuple(labels)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The labels, in the order of the logits."""
        return self.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels

    @classmethod
    def from_corpus(cls, corpus: D, architecture: PooledSettings) -> Self:
        """Collect the lower-cased words of the training texts, and the labels; DataError if two are the same."""
        if len(set(corpus.labels)) < len(corpus.labels):
            raise DataError(f"the labels {', '.join(corpus.labels)} contain a name twice; expected different names")
        words = Vocabulary.from_texts((example.tokens for example in corpus.train), lowercase=True)
        return cls(architecture, words, corpus.labels)

    def to_record(self) -> Mapping[str, Any]:
        return {"vocabulary": self.vocabulary.to_record(), "labels": list(self.labels)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: PooledSettings) -> Self:
        return cls(architecture, Vocabulary.from_record(record.get("vocabulary")), read_names(record, "labels"))

    def build(self) -> Classifier:
        from unrolled.lab.models.factory import make_classifier

        return make_classifier(self.architecture, len(self.vocabulary), len(self.labels))

    def encode(self, examples: Sequence[Example]) -> EncodedTexts:
        """Encode the words; the labels must be known."""
        from unrolled.lab.data.batches.base import EncodedTexts

        for number, example in enumerate(examples, 1):
            if not 0 <= example.label < len(self.labels):
                raise DataError(
                    f"text {number} has label {example.label}; expected 0 to {len(self.labels) - 1}, for: "
                    + ", ".join(self.labels)
                )
        texts, labels = [example.tokens for example in examples], [example.label for example in examples]
        return EncodedTexts.encode(texts, labels, self.vocabulary)

    def loss(self, model: nn.Module, batch: TextBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the labels."""
        from torch.nn import functional as F

        logits = model(batch.tokens, batch.lengths)
        return Loss(F.cross_entropy(logits, batch.labels, reduction="sum"), len(batch), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        from torch.nn import functional as F

        truths: list[str] = []
        answers: list[str] = []
        loss = 0.0
        for batch in batches:
            logits = model(batch.tokens, batch.lengths)
            loss += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            truths += [self.labels[label] for label in batch.labels.tolist()]
            answers += [self.labels[label] for label in logits.argmax(dim=-1).tolist()]
        return {**self.scores(truths, answers), "loss": loss / len(truths)}

    def scores(self, truths: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
        """Compute the metrics of the labels that the model answers."""
        right = sum(truth == answer for truth, answer in zip(truths, answers, strict=True))
        return {"accuracy": right / len(truths)}
