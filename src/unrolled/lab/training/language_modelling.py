"""Language modelling: the base class of the tasks lm (words) and chars (characters)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from pydantic import Field

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import END_OF_LINE, Language, Stream
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.training.task import HiddenState, Loss, PreparedText, Split
from unrolled.lab.training.vocabulary_task import VocabularyTask

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.data.batches.windows import RunningText, WindowBatch
    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.models.softmax import SoftmaxLayer

__all__ = ["LanguageModelSettings", "LanguageTask", "make_language_model"]

_MANY_WORDS = 50_000
_LINE_ENDS = (END_OF_LINE, "\n")
_COLUMN = 4096
"""Least number of tokens of a column in evaluation: the first ones of each column are predicted without a context."""


class LanguageModelSettings(EncoderSettings):
    """Settings of a language model."""

    encoder: str = "lstm"
    """Encoder: rnn, gru or lstm of torch.nn, or any cell or n-gram model of the library that reads one way."""
    bptt: int = Field(35, ge=1)
    """Number of tokens of truncated backpropagation through time; the hidden state is carried on."""
    tied: bool = True
    """Tie the output weights to the word vectors, through a projection if sizes differ; not if adaptive."""
    adaptive: Literal["auto", "on", "off"] = "auto"
    """Adaptive softmax, with rare words in clusters; auto uses it from 50,000 words on."""
    most: int | None = Field(None, ge=1)
    """Largest size of the vocabulary: the most frequent words; the others are read as <unk>."""
    min_count: int = Field(1, ge=1)
    """Smallest count of a word in the training text; rarer words are read as <unk>."""


def make_language_model(architecture: LanguageModelSettings, words: int) -> LanguageModel:
    """Build an untrained language model for ``words`` words; a transformer is causal by default."""
    from unrolled.lab.models.factory import feature_count, make_embedding_and_encoder
    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.models.softmax import AdaptiveSoftmax, FullSoftmax, TiedSoftmax

    if architecture.bidirectional:
        raise UsageError(
            "bidirectional is True, but a backward network sees the tokens to be predicted; set it to False"
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


class LanguageTask(VocabularyTask[Language, "WindowBatch"]):
    """Predict every token of a text from those before it: embedding, causal encoder, softmax.

    The text is read in streams, window by window (:mod:`unrolled.lab.data.batches.windows`). A recurrent network
    carries its hidden state from window to window, in evaluation too, so its metrics do not depend on the width of the
    windows. Encoders without a hidden state start anew in each window: give them wide ones.

    In evaluation a text is read from its first token to its last in one column; a text of 8,192 tokens or more in
    several side by side, 16 at most, each without the context before it.
    """

    never_generated: ClassVar[tuple[int, ...]] = (PADDING,)
    """Tokens that a generated text never contains."""
    evaluation_batch = 16
    architecture: LanguageModelSettings

    def evaluation_rows(self, split: Split[WindowBatch]) -> int:
        """Return the number of columns, 1 for a short text: a column begins without the context before it."""
        return max(1, min(self.evaluation_batch, len(split) // _COLUMN))

    @property
    def line_end(self) -> int:
        """The token that ends a line and precedes the first token of a text; ``<unk>`` if the text has no lines."""
        return next((token for token in self.vocabulary.encode(_LINE_ENDS) if token != UNKNOWN), UNKNOWN)

    @classmethod
    def from_corpus(cls, corpus: Language, architecture: LanguageModelSettings) -> Self:
        """Collect the tokens of the training text, most frequent first; DataError if none is frequent enough."""
        from unrolled.lab.data.stream_encoding import build_vocabulary

        count = architecture.min_count
        vocabulary = build_vocabulary(corpus.train, min_count=count, most=architecture.most)
        if count > 1 and not set(vocabulary.words[UNKNOWN + 1 :]) - set(_LINE_ENDS):
            raise DataError(
                f"no word occurs {count} times in the training text; give more text, or a smaller --min-count"
            )
        return cls(architecture, vocabulary)

    def to_record(self) -> Mapping[str, Any]:
        return {"vocabulary": self.vocabulary.to_record()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: LanguageModelSettings) -> Self:
        return cls(architecture, Vocabulary.from_record(record.get("vocabulary")))

    def build(self) -> LanguageModel:
        return make_language_model(self.architecture, len(self.vocabulary))

    def encode(self, examples: Stream) -> RunningText:
        """Encode the tokens as windows."""
        from unrolled.lab.data.batches.windows import RunningText
        from unrolled.lab.data.stream_encoding import encode_stream

        return RunningText(encode_stream(examples, self.vocabulary), self.line_end, self.architecture.bptt)

    def loss(self, model: nn.Module, batch: WindowBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the next tokens."""
        total, state = cast("LanguageModel", model).loss(batch.tokens, batch.targets, state)
        return Loss(total, int((batch.targets != PADDING).sum()), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[WindowBatch]) -> dict[str, float]:
        """Compute the mean cross-entropy over the whole text, with the hidden state carried on."""
        nats, count, state = 0.0, 0, cast("HiddenState", ())
        for batch in batches:
            found = self.loss(model, batch, state)
            nats, count, state = nats + found.total.item(), count + found.count, found.state
        return self.metrics_from_loss(nats / count)

    @abstractmethod
    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        """Convert the mean cross-entropy of a token, in nats, to the metrics of this task."""

    @abstractmethod
    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split a text that a person typed into tokens, with the tokens that end its lines."""

    @abstractmethod
    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Convert tokens to text, piece by piece: yield what each token adds."""

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare the beginning of a text, up to the token ``at``, without a line end before it.

        The outputs are the next token.
        """
        import torch

        from unrolled.lab.models.output_at_position import OutputAtPosition, checked_position

        tokens = self.tokenise(text)
        tokens = tokens[: checked_position(tokens, at) + 1]
        inputs = (torch.tensor([self.vocabulary.encode(tokens)]),)
        return PreparedText(
            OutputAtPosition(model, -1), inputs, tokens, self.vocabulary.words, self.vocabulary.unknown(tokens)
        )
