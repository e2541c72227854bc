"""Sequence tagging: named entities, parts of speech."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import Field

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import TaggedSentence, Tagging
from unrolled.lab.data.spans import TagGrammar, are_span_tags, iobes_tags
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.data.word_features import SHAPES, word_shape
from unrolled.lab.metrics.entity_scores import entity_scorer, entity_scores
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.training.record_fields import read_boolean, read_names
from unrolled.lab.training.task import HiddenState, Loss, Metric, PreparedText
from unrolled.lab.training.vocabulary_task import VocabularyTask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.labelled_sequences import EncodedSentences, TaggedBatch
    from unrolled.lab.models.tag_output import TagOutput
    from unrolled.lab.models.tagger import Tagger

__all__ = ["Tag", "TagSettings"]

_ENTITIES = (
    Metric(
        "f1", "micro F1 of entities with the right type and both ends: strict IOBES (seqeval)", requires=entity_scorer
    ),
    Metric("precision", "share of predicted entities that are right: strict IOBES (seqeval)", requires=entity_scorer),
    Metric("recall", "share of true entities that are found: strict IOBES (seqeval)", requires=entity_scorer),
)
_TOKENS = (
    Metric("accuracy", "share of tokens with the right tag"),
    Metric("loss", "mean negative log-likelihood of the tag of a token", higher_is_better=False, unit="nats"),
)


class TagSettings(EncoderSettings):
    """Settings of a tagger."""

    encoder: str = "lstm"
    """Encoder: rnn, gru or lstm of torch.nn, or any cell or n-gram model of the library."""
    embedding: int = Field(50, ge=1)
    """Size of the word vectors; 50 is the smallest size of GloVe's."""
    bidirectional: bool = True
    """Bidirectional encoder."""
    shapes: int = Field(10, ge=0)
    """Size of the vector of a word's shape (Capital, UPPER, 1985), which lower-casing removes; 0 for none."""
    crf: bool = True
    """Tag a whole sentence with a conditional random field, instead of each token by itself."""
    word_dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of words read as <unk> in training, so that the network learns a vector for <unk>."""


class Tag(VocabularyTask[Tagging, "TaggedBatch"]):
    """Predict a tag for each token: embedding, encoder, linear emissions, conditional random field."""

    name = "tag"
    description = "a tag for each token: named entities, parts of speech"
    kind = Tagging
    Architecture = TagSettings
    architecture: TagSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 0.002, "batch": 32, "clip": 5.0, "epochs": 15}
    metrics: tuple[Metric, ...] = (*_ENTITIES, *_TOKENS)

    def __init__(self, architecture: TagSettings, vocabulary: Vocabulary, tags: Sequence[str], spans: bool) -> None:
        super().__init__(architecture, vocabulary)
        self.tags = tuple(tags)
        self.spans = spans
        self.grammar = TagGrammar.iobes(self.tags) if spans else TagGrammar.free(len(self.tags))
        self.metrics = (*_ENTITIES, *_TOKENS) if spans else _TOKENS

    @classmethod
    def from_corpus(cls, corpus: Tagging, architecture: TagSettings) -> Self:
        """Collect the lower-cased words of the training sentences, and their tags."""
        words = Vocabulary.from_texts((example.tokens for example in corpus.train), lowercase=True)
        seen = {tag for example in corpus.train for tag in example.tags}
        return cls(architecture, words, iobes_tags(seen) if corpus.spans else sorted(seen), corpus.spans)

    @property
    def known_labels(self) -> tuple[str, ...]:
        """The tags of the training, as the formats tell those of a sentence: of tags that spell spans, their types.

        A sentence may have no others even where those of the training are plain.
        """
        types = dict.fromkeys(tag.partition("-")[2] for tag in self.tags if are_span_tags((tag,)))
        return tuple(types if self.spans else dict.fromkeys((*self.tags, *types)))

    @property
    def loss_name(self) -> str:
        """With a random field the training's loss is that of a sentence; the metric is that of a token."""
        return "train loss of a sentence" if self.architecture.crf else super().loss_name

    def to_record(self) -> Mapping[str, Any]:
        return {"vocabulary": self.vocabulary.to_record(), "tags": list(self.tags), "spans": self.spans}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: TagSettings) -> Self:
        words = Vocabulary.from_record(record.get("vocabulary"))
        return cls(architecture, words, read_names(record, "tags"), read_boolean(record, "spans"))

    def build(self) -> Tagger:
        from torch import nn

        from unrolled.lab.models.factory import feature_count, make_embedding_and_encoder
        from unrolled.lab.models.tag_output import IndependentTags, LinearChainCRF
        from unrolled.lab.models.tagger import Tagger

        chosen = self.architecture
        shapes = nn.Embedding(len(SHAPES), chosen.shapes, padding_idx=0) if chosen.shapes else None
        output: TagOutput = LinearChainCRF(self.grammar) if chosen.crf else IndependentTags()
        embedding, encoder = make_embedding_and_encoder(chosen, len(self.vocabulary), extra_features=chosen.shapes)
        return Tagger(
            embedding=embedding,
            encoder=encoder,
            head=nn.Linear(feature_count(chosen), len(self.tags)),
            output=output,
            shapes=shapes,
            dropout=chosen.dropout,
            word_dropout=chosen.word_dropout,
        )

    def encode(self, examples: Sequence[TaggedSentence]) -> EncodedSentences:
        from unrolled.lab.data.batches.labelled_sequences import EncodedSentences

        return EncodedSentences.encode(examples, self.vocabulary, self.tags, self.spans)

    def loss(self, model: nn.Module, batch: TaggedBatch, state: HiddenState) -> Loss:
        """Compute the negative log-likelihood; a prediction is a sentence with a random field, else a token."""
        output, inside = cast("TagOutput", model.output), _inside(batch)
        emissions = model(batch.tokens, batch.lengths, batch.shapes)
        return Loss(output.cost(emissions, batch.tags, inside), output.predictions(inside), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TaggedBatch]) -> dict[str, float]:
        """Compare the tags, and the entities if tags encode them."""
        truths: list[list[str]] = []
        answers: list[list[str]] = []
        loss = 0.0
        output = cast("TagOutput", model.output)
        for batch in batches:
            inside = _inside(batch)
            emissions = model(batch.tokens, batch.lengths, batch.shapes)
            loss += output.cost(emissions, batch.tags, inside).item()
            answers += [[self.tags[tag] for tag in row] for row in output.decode(emissions, inside)]
            rows = zip(batch.tags.tolist(), batch.lengths.tolist(), strict=True)
            truths += [[self.tags[tag] for tag in row[:length]] for row, length in rows]
        pairs = [pair for rows in zip(truths, answers, strict=True) for pair in zip(*rows, strict=True)]
        tokens = {"accuracy": sum(one == other for one, other in pairs) / len(pairs), "loss": loss / len(pairs)}
        return {**entity_scores(truths, answers)._asdict(), **tokens} if self.spans else tokens

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare a sentence; the outputs are the emissions of one token."""
        from unrolled.lab.models.output_at_position import OutputAtPosition, checked_position

        tokens = tokenise(text)
        position = checked_position(tokens, at)
        unknown = self.vocabulary.unknown(tokens)
        return PreparedText(
            OutputAtPosition(model, position), self._inputs([tokens]), tuple(tokens), self.tags, unknown
        )

    def tag(self, model: nn.Module, sentences: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Find the most likely tags of sentences.

        Args:
            model: A model of :meth:`build`; in training mode its dropout changes the tags.
            sentences: The tokens of each sentence, at least one, with the case in which people write them.

        Returns:
            A tag for each token, as the model learned them: those of spans in IOBES, of which ``convert_tags`` of
            ``unrolled.lab.data.spans`` makes other schemes.

        Raises:
            UsageError: If a sentence has no token, or is a string instead of its tokens.

        Example:
            >>> run = unrolled.load("runs/conll2003-lstm")  # doctest: +SKIP
            >>> run.task.tag(run.model, [["Anna", "met", "Boris"]])  # doctest: +SKIP
            [('S-PER', 'O', 'S-PER')]
        """
        import torch

        from unrolled.lab.models.padding_mask import padding_mask

        for place, tokens in enumerate(sentences):
            if isinstance(tokens, str):
                raise UsageError(f"sentences[{place}] is the string {tokens[:40]!r}; expected a list of its tokens")
            if not tokens:
                raise UsageError(f"sentences[{place}] has no token; leave it out")
        if not sentences:
            return []
        inputs = self._inputs(sentences)
        words, lengths, _ = inputs
        with torch.no_grad():
            found = cast("TagOutput", model.output).decode(model(*inputs), ~padding_mask(words, lengths))
        return [tuple(self.tags[tag] for tag in row) for row in found]

    def _inputs(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """Encode sentences as the model's inputs: words and lengths and shapes."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        words = [torch.tensor(self.vocabulary.encode(tokens)) for tokens in sentences]
        shapes = [torch.tensor([word_shape(token) for token in tokens]) for tokens in sentences]
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        return pad_sequence(words, batch_first=True), lengths, pad_sequence(shapes, batch_first=True)


def _inside(batch: TaggedBatch) -> Tensor:
    """Mask of the tokens, shape (batch, time)."""
    from unrolled.lab.models.padding_mask import padding_mask

    return ~padding_mask(batch.tokens, batch.lengths)
