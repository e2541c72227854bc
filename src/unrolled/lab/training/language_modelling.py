"""LanguageModelSettings running text token by token: what the tasks for words and for characters have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, cast

import torch
from pydantic import Field
from torch import nn

from unrolled.errors import UsageError
from unrolled.lab.data.batches.windows import RunningText, WindowBatch
from unrolled.lab.data.corpus import END_OF_LINE, Language, Stream
from unrolled.lab.data.stream_encoding import build_vocabulary, encode_stream
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from unrolled.lab.models.at_position import OutputAtPosition, checked_position
from unrolled.lab.models.factory import EncoderSettings, feature_count, make_embedding_and_encoder
from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.softmax import AdaptiveSoftmax, FullSoftmax, SoftmaxLayer, TiedSoftmax
from unrolled.lab.training.task import HiddenState, Loss, PreparedText, Task

__all__ = ["LanguageModelSettings", "LanguageTask", "make_language_model"]

_MANY_WORDS = 50_000
_LINE_ENDS = (END_OF_LINE, "\n")


class LanguageModelSettings(EncoderSettings):
    """What predicts the next token."""

    bptt: int = Field(35, ge=1)
    """Tokens through which the gradient flows back; the state flows on."""
    tied: bool = True
    """Predict with the word vectors themselves, through a projection where sizes differ; not if adaptive."""
    adaptive: Literal["auto", "on", "off"] = "auto"
    """Adaptive softmax: rare words in clusters; auto from 50,000 words on."""
    most: int | None = Field(None, ge=1)
    """Know so many words at most, the most frequent; the others are <unk>."""
    min_count: int = Field(1, ge=1)
    """Know words that occur so often in the training text at least; the others are <unk>."""


def make_language_model(architecture: LanguageModelSettings, words: int) -> LanguageModel:
    """Build a language model; its weights come from torch's global generator."""
    if architecture.bidirectional:
        raise UsageError(
            "bidirectional is True; expected False: read from the end, a text shows what is to be predicted"
        )
    if architecture.encoder == "transformer":
        options = {"causal": True, **architecture.options}
        architecture = architecture.model_copy(update={"options": options})
    size, embedding = feature_count(architecture), architecture.embedding
    head: SoftmaxLayer
    if architecture.adaptive == "on" or (architecture.adaptive == "auto" and words >= _MANY_WORDS):
        head = AdaptiveSoftmax(size, words)
    elif architecture.tied:
        head = TiedSoftmax(size, words, embedding)
    else:
        head = FullSoftmax(size, words)
    return LanguageModel(*make_embedding_and_encoder(architecture, words), head, architecture.dropout)


class LanguageTask(Task[Language, WindowBatch]):
    """Predict every token of a text from those before it: embedding, causal encoder, softmax.

    The text is read in columns, window by window (:mod:`unrolled.lab.data.batches.windows`). A recurrent network
    carries its state from window to window, in evaluation as in training, so that nothing it is judged by depends on
    the windows' width. Encoders without a state begin anew in each: give them wide ones.
    """

    never_generated: ClassVar[tuple[int, ...]] = (PADDING,)
    """What is not to be written: no text has it."""
    evaluation_batch = 16

    def __init__(self, architecture: LanguageModelSettings, vocabulary: Vocabulary) -> None:
        super().__init__(architecture)
        self.architecture: LanguageModelSettings = architecture
        self.vocabulary = vocabulary

    @property
    def line_end(self) -> int:
        """The token that ends a line: it stands before a text's first; ``<unk>`` where the text has no lines."""
        return next((token for token in self.vocabulary.encode(_LINE_ENDS) if token != UNKNOWN), UNKNOWN)

    @classmethod
    def from_corpus(cls, corpus: Language, architecture: LanguageModelSettings) -> Self:
        """Gather the tokens of the training text, the frequent first."""
        return cls(
            architecture, build_vocabulary(corpus.train, min_count=architecture.min_count, most=architecture.most)
        )

    def to_record(self) -> Mapping[str, Any]:
        """Give the tokens."""
        return {"vocabulary": self.vocabulary.to_record()}

    @classmethod
    def from_record(cls, fields: Mapping[str, Any], architecture: LanguageModelSettings) -> Self:
        """Make the task of these tokens."""
        return cls(architecture, Vocabulary.from_record(fields.get("vocabulary")))

    def build(self) -> LanguageModel:
        """Build the language model."""
        return make_language_model(self.architecture, len(self.vocabulary))

    def embeddings(self, model: nn.Module) -> tuple[tuple[Vocabulary, nn.Embedding], ...]:
        """Name the token vectors."""
        return ((self.vocabulary, cast("nn.Embedding", model.embedding)),)

    def encode(self, examples: Stream) -> RunningText:
        """Look up all tokens."""
        return RunningText(encode_stream(examples, self.vocabulary), self.line_end, self.architecture.bptt)

    def loss(self, model: nn.Module, batch: WindowBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the tokens that came."""
        total, state = cast("LanguageModel", model).loss(batch.tokens, batch.targets, state)
        return Loss(total, int((batch.targets != PADDING).sum()), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[WindowBatch]) -> dict[str, float]:
        """Read the text once, the state carried along, and count nats a token."""
        nats, count, state = 0.0, 0, cast("HiddenState", ())
        for batch in batches:
            found = self.loss(model, batch, state)
            nats, count, state = nats + found.total.item(), count + found.count, found.state
        return self.metrics_from_loss(nats / count)

    @abstractmethod
    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        """Say the loss in the units of this task."""

    @abstractmethod
    def tokenise(self, text: str) -> tuple[str, ...]:
        """Cut a text as people type it."""

    @abstractmethod
    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Write tokens for people, as they come."""

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Put the beginning of a text before a trained model; it says what comes after the token ``at``."""
        tokens = self.tokenise(text)
        tokens = tokens[: checked_position(tokens, at) + 1]
        inputs = (torch.tensor([self.vocabulary.encode(tokens)]),)
        return PreparedText(
            OutputAtPosition(model, -1), inputs, tokens, self.vocabulary.words, self.vocabulary.unknown(tokens)
        )
