"""Answer selection: rank the candidate answers of a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import Field

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Question, Selection
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.vocabulary import Vocabulary, compose
from unrolled.lab.data.word_features import WordOverlap
from unrolled.lab.metrics.ranking import ranking_scores
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.training.task import HiddenState, Loss, Metric, PreparedText
from unrolled.lab.training.vocabulary_task import VocabularyTask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.text_pairs import EncodedQuestions, QuestionBatch
    from unrolled.lab.models.ranker import Ranker

__all__ = ["Rank", "RankSettings"]

_BETWEEN = "|||"


class RankSettings(PooledSettings):
    """Settings of a ranker."""

    hidden: int = Field(64, ge=1)
    """Size of the hidden state, for each direction."""
    embedding: int = Field(50, ge=1)
    """Size of the word vectors."""
    bidirectional: bool = True
    """Bidirectional encoder."""
    pooling: str = "mean"
    """Pooling of the states: last, ends, mean, max or attention."""
    dropout: float = Field(0.3, ge=0.0, lt=1.0)
    """Dropout: share of features set to 0 in training."""
    overlap: bool = True
    """Add features: the words that question and sentence share, weighted by rarity, and the sentence's length."""


class Rank(VocabularyTask[Selection, "QuestionBatch"]):
    """Rank the sentences that may answer a question: one encoder for both, a comparison and a score.

    The loss is listwise: the cross-entropy of the right candidates under the softmax of a question's scores. Every
    question has the same weight, however many wrong candidates it has. Questions without a right candidate are skipped.

    Source:
        Cao et al. (2007), Learning to Rank: from pairwise to listwise, https://doi.org/10.1145/1273496.1273513, for
        the loss (ListNet's top one).
    """

    name = "rank"
    description = "answer selection: which sentence answers a question"
    kind = Selection
    Architecture = RankSettings
    architecture: RankSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {"batch": 16, "epochs": 10}
    evaluation_batch = 32
    metrics = (
        Metric(
            "mrr", "mean reciprocal rank of the first right candidate; ties count as worst; questions with an answer"
        ),
        Metric("map", "mean average precision; ties count as worst; the same questions"),
        Metric("loss", "mean cross-entropy of a right candidate among all of its question", False, "nats"),
    )

    def __init__(self, architecture: RankSettings, vocabulary: Vocabulary, overlap: WordOverlap) -> None:
        super().__init__(architecture, vocabulary)
        self.overlap = overlap

    @classmethod
    def from_corpus(cls, corpus: Selection, architecture: RankSettings) -> Self:
        """Collect the words of all training questions and candidates, and their rarity."""
        sentences = [compose(candidate.tokens) for question in corpus.train for candidate in question.candidates]
        texts = [question.tokens for question in corpus.train] + sentences
        return cls(architecture, Vocabulary.from_texts(texts, lowercase=True), WordOverlap.from_sentences(sentences))

    def to_record(self) -> Mapping[str, Any]:
        return {"vocabulary": self.vocabulary.to_record(), "overlap": self.overlap.to_record()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], architecture: RankSettings) -> Self:
        words = Vocabulary.from_record(record.get("vocabulary"))
        return cls(architecture, words, WordOverlap.from_record(record.get("overlap")))

    def build(self) -> Ranker:
        from unrolled.lab.models.factory import make_embedding_and_encoder, make_pooling, pooled_feature_count
        from unrolled.lab.models.ranker import Ranker, make_comparison

        chosen = self.architecture
        embedding, encoder = make_embedding_and_encoder(chosen, len(self.vocabulary))
        return Ranker(
            embedding=embedding,
            encoder=encoder,
            pooling=make_pooling(chosen),
            match=make_comparison(pooled_feature_count(chosen), chosen.dropout),
            counts=WordOverlap.feature_count if chosen.overlap else 0,
            dropout=chosen.dropout,
            word_dropout=chosen.word_dropout,
        )

    def encode(self, examples: Sequence[Question]) -> EncodedQuestions:
        """Encode the questions that have a right candidate."""
        from unrolled.lab.data.batches.text_pairs import EncodedQuestions

        for number, question in enumerate(examples, start=1):
            if not question.tokens or not all(candidate.tokens for candidate in question.candidates):
                what = "has an empty candidate" if question.tokens else "is empty"
                raise DataError(f"question {number} of {len(examples)} {what}; give at least one word")
        rows = tuple(self._encode(question) for question in examples if question.answered)
        if not rows:
            raise DataError(f"none of {len(examples)} questions has a right candidate; at least one must")
        if all(bool(row.right.all()) for row in rows):
            raise DataError(
                f"none of the {len(rows)} questions with a right candidate has a wrong one too; at least one must, or "
                "there is nothing to rank"
            )
        return EncodedQuestions(rows)

    def _encode(self, question: Question) -> QuestionBatch:
        import torch

        from unrolled.lab.data.batches.text_pairs import QuestionBatch, pad_and_stack

        candidates = question.candidates
        texts = [torch.tensor(self.vocabulary.encode(candidate.tokens)) for candidate in candidates]
        return QuestionBatch(
            questions=torch.tensor([self.vocabulary.encode(question.tokens)]),
            lengths=torch.tensor([len(question.tokens)]),
            candidates=pad_and_stack(texts)[None],
            sizes=torch.tensor([[len(text) for text in texts]]),
            shared=torch.tensor([[self._features(question.tokens, each.tokens) for each in candidates]]),
            right=torch.tensor([[each.right for each in candidates]]),
        )

    def _features(self, question: Sequence[str], sentence: Sequence[str]) -> tuple[float, float, float]:
        """Compare words in the form in which the vocabulary has them."""
        if self.vocabulary.composed:
            question, sentence = compose(question), compose(sentence)
        return self.overlap.features(question, sentence)

    def loss(self, model: nn.Module, batch: QuestionBatch, state: HiddenState) -> Loss:
        return Loss(_cost(self._scores(model, batch), batch.right), len(batch), state)

    def compute_metrics(self, model: nn.Module, batches: Iterable[QuestionBatch]) -> dict[str, float]:
        scores: list[list[float]] = []
        right: list[list[bool]] = []
        loss = 0.0
        for batch in batches:
            found = self._scores(model, batch)
            loss += _cost(found, batch.right).item()
            for given, truths, there in zip(found, batch.right, batch.sizes > 0, strict=True):
                scores.append(given[there].tolist())
                right.append(truths[there].tolist())
        return {**ranking_scores(scores, right)._asdict(), "loss": loss / len(scores)}

    def _scores(self, model: nn.Module, batch: QuestionBatch) -> Tensor:
        shared = batch.shared if self.architecture.overlap else None
        return model(batch.questions, batch.lengths, batch.candidates, batch.sizes, shared)

    def prepare(self, model: nn.Module, text: str, at: int | None = None) -> PreparedText:
        """Prepare ``question ||| sentence``; the network that reads the sentence is opened."""
        import torch

        from unrolled.lab.models.ranker import FixedQuestionScorer

        self.check_no_position(at)
        question, *sentences = (tuple(tokenise(part)) for part in text.split(_BETWEEN))
        if len(sentences) != 1 or not question or not sentences[0]:
            raise UsageError(f"the text does not have the form: question {_BETWEEN} sentence")
        (sentence,) = sentences
        asked, read = (torch.tensor([self.vocabulary.encode(tokens)]) for tokens in (question, sentence))
        shared = torch.tensor([self._features(question, sentence)]) if self.architecture.overlap else None
        given = FixedQuestionScorer(cast("Ranker", model), asked, shared)
        return PreparedText(given, (read,), sentence, ("score",), self.vocabulary.unknown((*question, *sentence)))


def _cost(scores: Tensor, right: Tensor) -> Tensor:
    """Sum over questions of the cross-entropy of the right candidates, with equal target probabilities."""
    known = scores.log_softmax(dim=-1).masked_fill(~right, 0.0)
    return -(known.sum(dim=-1) / right.sum(dim=-1)).sum()
