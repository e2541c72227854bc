"""Translation of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import Field, field_validator, model_validator

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import SentencePair, Translation
from unrolled.lab.data.tokenise import tokenise_unknown
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from unrolled.lab.metrics.bleu import BLEU_SIGNATURE, bleu, bleu_scorer
from unrolled.lab.metrics.perplexity import perplexity
from unrolled.lab.models.settings import MOST_LAYERS, EncoderSettings
from unrolled.lab.training.task import HiddenState, Loss, Metric, PreparedText, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.text_pairs import EncodedPairs, TranslationBatch
    from unrolled.lab.models.beam_search import TokenIds
    from unrolled.lab.models.sequence_to_sequence import (
        DecodingState,
        RecurrentNetwork,
        SequenceToSequence,
    )

__all__ = ["Translate", "TranslateSettings"]

END = 2
"""Index of ``<eos>`` in the target vocabulary: it ends a sentence, and precedes its first word."""
_END = "<eos>"
_BETWEEN = "|||"


class TranslateSettings(EncoderSettings):
    """Settings of a translator: the five extensions of the CS224d notes, and attention."""

    hidden: int = Field(256, ge=1)
    """Size of the hidden state of the encoder, for each direction, and of the decoder."""
    embedding: int = Field(256, ge=1)
    """Size of the word vectors of both languages."""
    layers: int = Field(1, ge=1, le=MOST_LAYERS)
    """Number of recurrent layers of encoder and decoder (extension III)."""
    bidirectional: bool = True
    """Bidirectional encoder (extension IV)."""
    dropout: float = Field(0.3, ge=0.0, lt=1.0)
    """Dropout: share of features set to 0 in training."""
    separate: bool = True
    """Separate weights for encoder and decoder (extension I), instead of one network."""
    fed: bool = True
    """Feed the encoder's last state and the previous word to the decoder (extension II)."""
    reverse: bool = False
    """Read the source in reverse (extension V)."""
    attention: bool = False
    """Attention over the encoder's states; not one of the five extensions."""
    min_count: int = Field(2, ge=1)
    """Smallest count of a word in training; rarer words are read as <unk>."""

    @field_validator("encoder")
    @classmethod
    def _recurrent(cls, name: str) -> str:
        from unrolled.cells import CELLS
        from unrolled.composition import ENCODERS

        if name in ENCODERS.names() and name not in CELLS.names():
            raise UsageError(
                f"encoder is {name}, which has no hidden state for a decoder; choose rnn, gru, lstm or a recurrent cell"
            )
        return name

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.bidirectional and not self.separate:
            raise UsageError(
                "bidirectional is True, but separate is False: a decoder reads one way, so an encoder that shares its "
                "weights must too; change one of the two"
            )
        return self


class Translate(Task[Translation, "TranslationBatch"]):
    """Translate a sentence: an encoder, and a decoder that starts from its last state."""

    name = "translate"
    description = "translations of sentences"
    kind = Translation
    Architecture = TranslateSettings
    architecture: TranslateSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"batch": 64, "lr": 0.001, "epochs": 12}
    metrics = (
        Metric(
            "bleu",
            f"BLEU of greedy translations, 0 to 100; sacrebleu, {BLEU_SIGNATURE}",
            unit="",
            requires=bleu_scorer,
        ),
        Metric("loss", "mean cross-entropy of a word given the right previous words; <eos> counts", False, "nats"),
        Metric("perplexity", "of a word: exp of the loss", False, ""),
    )

    def __init__(self, architecture: TranslateSettings, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__(architecture)
        self.source = source
        self.target = target
        if len(target) <= END or target.words[END] != _END:
            raise DataError(f"the target vocabulary lacks {_END!r} at index {END}")

    @classmethod
    def from_corpus(cls, corpus: Translation, architecture: TranslateSettings) -> Self:
        """Collect the words of the training sentences that are frequent enough; DataError if a language has none."""
        count = architecture.min_count
        source = Vocabulary.from_texts((pair.source for pair in corpus.train), min_count=count, lowercase=True)
        plain = Vocabulary.from_texts((pair.target for pair in corpus.train), min_count=count)
        words = tuple(word for word in plain.words[END:] if word != _END)
        if not words or len(source) == UNKNOWN + 1:
            side = "source" if words else "target"
            raise DataError(
                f"no {side} word occurs {count} times in the training sentences; give more sentences, or a smaller "
                "--min-count"
            )
        return cls(architecture, source, Vocabulary((*plain.words[:END], _END, *words), composed=True))

    def to_record(self) -> Mapping[str, Any]:
        return {"source": self.source.to_record(), "target": self.target.to_record()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: TranslateSettings) -> Self:
        source, target = (Vocabulary.from_record(record.get(key)) for key in ("source", "target"))
        return cls(architecture, source, target)

    def build(self) -> SequenceToSequence:
        from torch import nn

        from unrolled.lab.models.factory import feature_count, make_encoder
        from unrolled.lab.models.sequence_to_sequence import LuongAttention, SequenceToSequence

        made = self.architecture
        size = feature_count(made)
        both = made.embedding + size  # input of extension II: the previous word, and c
        one_way = made.model_copy(update={"bidirectional": False})
        encoder = make_encoder(made, both if made.fed and not made.separate else made.embedding)
        decoder = None
        if made.separate:
            decoder = make_encoder(
                one_way, both if made.fed else 1
            )  # without extension II its input is empty, but a network needs one
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
        from torch import nn

        found = [(self.source, model.source), (self.target, model.target)]
        return tuple((words, each) for words, each in found if isinstance(each, nn.Embedding))

    def encode(self, examples: Sequence[SentencePair]) -> EncodedPairs:
        """Encode the words; the source is reversed if the settings say so."""
        import torch

        from unrolled.lab.data.batches.text_pairs import EncodedPairs

        if not examples:
            raise DataError("a split has no sentence pairs; at least one is needed")
        for number, pair in enumerate(examples, start=1):
            if not pair.source or not pair.target:
                side = "target" if pair.source else "source"
                raise DataError(f"pair {number} of {len(examples)} has an empty {side}; give at least one word")
        beyond: dict[str, int] = {}
        targets = []
        for pair in examples:
            row = [
                index if index > END else beyond.setdefault(word, len(self.target) + len(beyond))
                for word, index in zip(pair.target, self.target.encode(pair.target), strict=True)
            ]
            targets.append(torch.tensor([*row, END]))
        return EncodedPairs(tuple(self.encode_source(pair.source) for pair in examples), tuple(targets))

    def doubts(self, examples: Sequence[SentencePair]) -> tuple[str, ...]:
        """Say that the languages may be swapped, if most source words are known as target words alone."""
        words = [word for pair in examples for word in pair.source]
        swapped = sum(word in self.target and word not in self.source for word in words)
        if 2 * swapped <= len(words):
            return ()
        return (
            f"{swapped:,} of the {len(words):,} words of the source are known to the model as words of the target "
            "alone; if the languages are swapped, name the files in the other order",
        )

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split at spaces; a piece that is not in the source vocabulary is split further, as in treebanks."""
        return tuple(tokenise_unknown(text, self.source))

    def encode_source(self, words: Sequence[str]) -> Tensor:
        """Return the indices of the source's words, shape (time,), in the order in which the model reads them."""
        import torch

        return torch.tensor(self.source.encode(self._ordered(words)))

    def _ordered(self, words: Sequence[str]) -> Sequence[str]:
        return words[::-1] if self.architecture.reverse else words

    def loss(self, model: nn.Module, batch: TranslationBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of every word given the right previous words, and of the end."""
        import torch
        from torch.nn import functional as F

        target = batch.target.masked_fill(batch.target >= len(self.target), UNKNOWN)
        previous = torch.cat((torch.full_like(target[:, :1], END), target[:, :-1]), dim=1)
        logits = model(batch.source, previous, batch.lengths)
        total = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PADDING, reduction="sum")
        return Loss(total, int((target != PADDING).sum()), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[TranslationBatch]) -> dict[str, float]:
        """Translate greedily, and compare with the reference translations."""
        loss, count = 0.0, 0
        said: list[TokenIds] = []
        right: list[TokenIds] = []
        for batch in batches:
            cost = self.loss(model, batch, ())
            loss, count = loss + cost.total.item(), count + cost.count
            said += self.translate(model, batch.source, batch.lengths)
            right += ([word for word in row if word not in (PADDING, END)] for row in batch.target.tolist())
        mean = loss / count
        return {"bleu": bleu(said, right), "loss": mean, "perplexity": perplexity(mean)}

    def translate(self, model: nn.Module, source: Tensor, lengths: Tensor, beam: int = 1) -> list[TokenIds]:
        """Translate encoded sentences, shape (batch, time); a beam of 1 takes the most likely word at each position."""
        import torch

        from unrolled.lab.models.beam_search import beam_search, greedy_search
        from unrolled.lab.models.sequence_to_sequence import SequenceToSequence

        assert isinstance(model, SequenceToSequence)

        def step(words: Tensor, decoding: DecodingState) -> tuple[Tensor, DecodingState]:
            logits, after = model.step(words, decoding)
            return logits.index_fill(1, torch.tensor(PADDING, device=logits.device), -torch.inf), after

        with torch.no_grad():
            # longer than any reference of Multi30k: only a translation that does not end by itself is cut off
            decoding, longest = model.begin(source, lengths), 2 * lengths + 10
            if beam == 1:
                return greedy_search(step, decoding, longest, END)
            return beam_search(step, decoding, longest, END, beam)

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare a sentence; the encoder is opened, and the outputs are one word of the translation.

        ``sentence ||| beginning`` explains the word after that beginning of a translation. A sentence alone explains a
        word of the model's own translation: the first one, or the one at ``at``.
        """
        import torch

        from unrolled.lab.models.output_at_position import OutputAtPosition, checked_position

        first, *others = text.split(_BETWEEN)
        sentence, given = self.tokenise(first), [part.split() for part in others]
        if len(given) > 1 or not sentence:
            raise UsageError(f"the text does not have the form: sentence, or: sentence {_BETWEEN} translation so far")
        source = self.encode_source(sentence)[None]
        if given:
            said = self.target.encode(given[0])
            position = len(said) if at is None else checked_position([*given[0], _END], at)
        else:
            (said,) = self.translate(model, source, torch.tensor([len(sentence)]))
            position = checked_position([*self.target.decode(said), _END], at or 0)
        words = tuple(self._ordered(sentence))
        # a word that the sentence has too would be marked there
        strange = (word for part in given for word in self.target.unknown(part) if word not in words)
        return PreparedText(
            model=OutputAtPosition(model, position),
            inputs=(source, torch.tensor([[END, *said]])),
            tokens=words,
            outputs=self.target.words,
            unknown=(*self.source.unknown(words), *strange),
            rnn="model.encoder",
        )


def _vectors(words: int, size: int) -> nn.Embedding:
    """Create word vectors with torch's initialisation: with the classifiers' small ones attention learns late."""
    from torch import nn

    return nn.Embedding(words, size, padding_idx=PADDING)
