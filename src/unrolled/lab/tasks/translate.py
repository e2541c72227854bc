"""Translate sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.cells import CELLS
from unrolled.composition import ENCODERS
from unrolled.errors import DataError, UsageError
from unrolled.lab.data.batches.sentence_pairs import EncodedPairs, TranslationBatch
from unrolled.lab.data.corpus import SentencePair, Translation
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from unrolled.lab.metrics.bleu import BLEU_SIGNATURE, bleu, bleu_scorer
from unrolled.lab.models.at_position import OutputAtPosition, checked_position
from unrolled.lab.models.beam_search import TokenIds, beam_search, greedy_search
from unrolled.lab.models.factory import EncoderSettings, feature_count, make_encoder
from unrolled.lab.models.luong_attention import LuongAttention
from unrolled.lab.models.sequence_to_sequence import DecodingState, RecurrentNetwork, SequenceToSequence
from unrolled.lab.training.task import HiddenState, Loss, Metric, PreparedText, Task

__all__ = ["EncodedPairs", "Translate", "TranslateSettings", "TranslationBatch"]

END = 2
"""The index of ``<eos>`` in the target vocabulary: it ends a sentence, and stands before its first word."""
_END = "<eos>"
_BETWEEN = "|||"


class TranslateSettings(EncoderSettings):
    """What reads a sentence and says it in another language; the five extensions of the notes, and attention."""

    hidden: int = Field(256, ge=1)
    """Size of its state, for each direction; the decoder's is the same."""
    embedding: int = Field(256, ge=1)
    """Size of the word vectors, of either language."""
    layers: int = Field(1, ge=1)
    """Recurrent layers of encoder and decoder, one on top of the other (extension III)."""
    bidirectional: bool = True
    """The encoder reads from both ends (extension IV)."""
    dropout: float = Field(0.3, ge=0.0, lt=1.0)
    """Share of features dropped in training."""
    separate: bool = True
    """Encoder and decoder have weights of their own (extension I); else they are one network."""
    fed: bool = True
    """The decoder also reads the encoder's last state and the previous word (extension II)."""
    reverse: bool = False
    """The source is read from its end (extension V)."""
    attention: bool = False
    """The decoder looks back at all of the encoder's states, too; none of the notes' five extensions."""
    min_count: int = Field(2, ge=1)
    """How often a word must occur in training to be known."""

    @field_validator("encoder")
    @classmethod
    def _recurrent(cls, name: str) -> str:
        if name in ENCODERS.names() and name not in CELLS.names():
            raise UsageError(f"{name} carries no state to a decoder; expected rnn, gru, lstm or a recurrent cell")
        return name

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.bidirectional and not self.separate:
            raise UsageError(
                "bidirectional without separate: a decoder reads one way, so an encoder that shares its weights does; "
                "expected one of the two to change"
            )
        return self


class Translate(Task[Translation, TranslationBatch]):
    """Say a sentence in another language: an encoder, and a decoder that begins where it ended."""

    name = "translate"
    description = "translations of sentences"
    kind = Translation
    Architecture = TranslateSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"batch": 64, "lr": 0.001, "epochs": 12}
    metrics = (
        Metric(
            "bleu",
            f"BLEU of greedy translations, 0 to 100; sacrebleu, {BLEU_SIGNATURE}",
            unit="",
            requires=bleu_scorer,
        ),
        Metric("loss", "mean cross-entropy of a word after the right ones before it, <eos> counted", False, "nats"),
        Metric("perplexity", "of a word: exp of the loss", False, ""),
    )

    def __init__(self, architecture: TranslateSettings, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__(architecture)
        self.architecture: TranslateSettings = architecture
        self.source = source
        self.target = target
        if len(target) <= END or target.words[END] != _END:
            raise DataError(f"the target vocabulary has no {_END!r} at {END}; expected it there")

    @classmethod
    def from_corpus(cls, corpus: Translation, architecture: TranslateSettings) -> Self:
        """Gather the words of the training sentences that occur often enough."""
        count = architecture.min_count
        source = Vocabulary.from_texts((pair.source for pair in corpus.train), min_count=count, lowercase=True)
        plain = Vocabulary.from_texts((pair.target for pair in corpus.train), min_count=count)
        words = tuple(word for word in plain.words[END:] if word != _END)
        return cls(architecture, source, Vocabulary((*plain.words[:END], _END, *words)))

    def to_record(self) -> Mapping[str, Any]:
        """Give the words of both languages."""
        return {"source": self.source.to_record(), "target": self.target.to_record()}

    @classmethod
    def from_record(cls, fields: Mapping[str, Any], architecture: TranslateSettings) -> Self:
        """Make the task of these words."""
        source, target = (Vocabulary.from_record(fields.get(key)) for key in ("source", "target"))
        return cls(architecture, source, target)

    def build(self) -> SequenceToSequence:
        """Build encoder and decoder."""
        made = self.architecture
        size = feature_count(made)
        both = made.embedding + size  # what extension II reads: the previous word, and c
        one_way = made.model_copy(update={"bidirectional": False})
        encoder = make_encoder(made, both if made.fed and not made.separate else made.embedding)
        decoder = None
        if made.separate:
            decoder = make_encoder(one_way, both if made.fed else 1)  # it reads nothing, but something must be read
        return SequenceToSequence(
            source=_vectors(len(self.source), made.embedding),
            encoder=cast("RecurrentNetwork", encoder),
            decoder=cast("RecurrentNetwork | None", decoder),
            target=_vectors(len(self.target), made.embedding) if made.fed else None,
            head=nn.Linear(made.hidden, len(self.target)),
            attention=LuongAttention(made.hidden, size) if made.attention else None,
            dropout=made.dropout,
        )

    def embeddings(self, model: nn.Module) -> tuple[tuple[Vocabulary, nn.Embedding], ...]:
        """Name the word vectors of both languages, if the decoder reads words at all."""
        found = [(self.source, model.source), (self.target, model.target)]
        return tuple((words, each) for words, each in found if isinstance(each, nn.Embedding))

    def encode(self, examples: Sequence[SentencePair]) -> EncodedPairs:
        """Look up all words; the source is reversed if the architecture says so."""
        if not examples:
            raise DataError("a split has no pairs; expected at least one")
        for number, pair in enumerate(examples, start=1):
            if not pair.source or not pair.target:
                side = "target" if pair.source else "source"
                raise DataError(f"pair {number} of {len(examples)} has an empty {side}; expected at least one word")
        beyond: dict[str, int] = {}
        targets = []
        for pair in examples:
            row = [
                index if index > END else beyond.setdefault(word, len(self.target) + len(beyond))
                for word, index in zip(pair.target, self.target.encode(pair.target), strict=True)
            ]
            targets.append(torch.tensor([*row, END]))
        return EncodedPairs(tuple(self.encode_source(pair.source) for pair in examples), tuple(targets))

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Cut a sentence at spaces, and what is no word of the training sources as treebanks do."""
        return tuple(
            token for piece in text.split() for token in ([piece] if piece in self.source else tokenise(piece))
        )

    def encode_source(self, words: Sequence[str]) -> Tensor:
        """Look up the words of a source, in the order in which the model reads them."""
        return torch.tensor(self.source.encode(self._ordered(words)))

    def _ordered(self, words: Sequence[str]) -> Sequence[str]:
        return words[::-1] if self.architecture.reverse else words

    def loss(self, model: nn.Module, batch: TranslationBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of every word after the right ones before it, and of the end."""
        target = batch.target.masked_fill(batch.target >= len(self.target), UNKNOWN)
        previous = torch.cat((torch.full_like(target[:, :1], END), target[:, :-1]), dim=1)
        logits = model(batch.source, previous, batch.lengths)
        total = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PADDING, reduction="sum")
        return Loss(total, int((target != PADDING).sum()), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TranslationBatch]) -> dict[str, float]:
        """Translate greedily, and compare with the translations at hand."""
        loss, count = 0.0, 0
        said: list[TokenIds] = []
        right: list[TokenIds] = []
        for batch in batches:
            cost = self.loss(model, batch, ())
            loss, count = loss + cost.total.item(), count + cost.count
            said += self.translate(model, batch.source, batch.lengths)
            right += ([word for word in row if word not in (PADDING, END)] for row in batch.target.tolist())
        mean = loss / count
        return {"bleu": bleu(said, right), "loss": mean, "perplexity": math.exp(min(mean, 700.0))}

    def translate(self, model: nn.Module, source: Tensor, lengths: Tensor, beam: int = 1) -> list[TokenIds]:
        """Translate sentences."""
        assert isinstance(model, SequenceToSequence)

        def step(words: Tensor, decoding: DecodingState) -> tuple[Tensor, DecodingState]:
            logits, after = model.step(words, decoding)
            return logits.index_fill(1, torch.tensor(PADDING, device=logits.device), -torch.inf), after

        with torch.no_grad():
            decoding, longest = model.begin(source, lengths), 2 * lengths + 10
            if beam == 1:
                return greedy_search(step, decoding, longest, END)
            return beam_search(step, decoding, longest, END, beam)

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Put a sentence before a trained translator, for what it says at one position; the encoder is opened.

        ``sentence ||| beginning`` asks for the word after a beginning of the translation, a sentence alone for a word
        of the model's own: the first one, or that at ``at``.
        """
        first, *others = text.split(_BETWEEN)
        sentence, given = self.tokenise(first), [part.split() for part in others]
        if len(given) > 1 or not sentence:
            raise UsageError(f"the text is no sentence; expected: sentence, or: sentence {_BETWEEN} translation so far")
        source = self.encode_source(sentence)[None]
        if given:
            said = self.target.encode(given[0])
            position = len(said) if at is None else checked_position([*given[0], _END], at)
        else:
            (said,) = self.translate(model, source, torch.tensor([len(sentence)]))
            position = checked_position([*self.target.decode(said), _END], at or 0)
        words = tuple(self._ordered(sentence))
        return PreparedText(
            model=OutputAtPosition(model, position),
            inputs=(source, torch.tensor([[END, *said]])),
            tokens=words,
            outputs=self.target.words,
            unknown=self.source.unknown(words),
            rnn="model.encoder",
        )


def _vectors(words: int, size: int) -> nn.Embedding:
    """Draw word vectors of torch's own size: small ones, as classifiers begin with, make attention learn late."""
    return nn.Embedding(words, size, padding_idx=PADDING)
