"""Language modelling, word by word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from unrolled.lab.data.corpus import END_OF_LINE, Words
from unrolled.lab.data.tokenise import tokenise_unknown
from unrolled.lab.metrics.perplexity import perplexity
from unrolled.lab.training.language_modelling import LanguageModelSettings, LanguageTask
from unrolled.lab.training.task import Metric

__all__ = ["LanguageModelling", "WordModelSettings"]


class WordModelSettings(LanguageModelSettings):
    """Settings of a language model of words."""

    hidden: int = Field(256, ge=1)
    """Size of the hidden state."""
    embedding: int = Field(256, ge=1)
    """Size of the word vectors."""
    dropout: float = Field(0.4, ge=0.0, lt=1.0)
    """Dropout: share of features set to 0 in training."""


class LanguageModelling(LanguageTask):
    """Predict the next word; see :class:`unrolled.lab.training.language_modelling.LanguageTask`."""

    name = "lm"
    description = "language modelling: the next word of running text"
    kind = Words
    Architecture = WordModelSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {
        "batch": 20,
        "lr": 0.003,
        "schedule": "cosine",
        "epochs": 12,
    }
    metrics = (
        Metric(
            "perplexity",
            "exp of the loss; each <eos>, the end of a line, counts as a word",
            higher_is_better=False,
            unit="",
        ),
        Metric("loss", "mean cross-entropy of a word; <eos> and <unk> count", higher_is_better=False, unit="nats"),
        Metric("bits", "the loss in bits", higher_is_better=False, unit=""),
    )

    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        return {"perplexity": perplexity(loss), "loss": loss, "bits": loss / math.log(2)}

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split at spaces; a piece that is not in the vocabulary is split further, as in treebanks."""
        end = [END_OF_LINE] if END_OF_LINE in self.vocabulary else []
        words: list[str] = []
        for number, line in enumerate(text.split("\n")):
            words += end if number else []
            words += tokenise_unknown(line, self.vocabulary)
        return tuple(words)

    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Join words with spaces, and replace ``<eos>`` by a newline."""
        gap = ""
        for token in tokens:
            if token == END_OF_LINE:
                yield "\n"
                gap = ""
            else:
                yield gap + token
                gap = " "
