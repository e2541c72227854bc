"""The base class of the tasks whose model reads words of one vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.training.task import Task

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.data.batches.base import Batch

__all__ = ["VocabularyTask"]

B = TypeVar("B", bound="Batch")
C = TypeVar("C", bound=Corpus[Any])


class VocabularyTask(Task[C, B]):
    """A task with one vocabulary, for the words that the ``embedding`` of its model reads."""

    def __init__(self, architecture: EncoderSettings, vocabulary: Vocabulary) -> None:
        super().__init__(architecture)
        self.vocabulary = vocabulary

    def embeddings(self, model: nn.Module) -> tuple[tuple[Vocabulary, nn.Embedding], ...]:
        return ((self.vocabulary, cast("nn.Embedding", model.embedding)),)
