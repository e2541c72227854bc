"""Predict running text word by word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from unrolled.lab.data.corpus import END_OF_LINE, Words
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.training.language_modelling import LanguageModelSettings, LanguageTask
from unrolled.lab.training.task import Metric

__all__ = ["LanguageModelling", "WordModelSettings"]

_LARGEST = 700.0  # whose exp is still a number


class WordModelSettings(LanguageModelSettings):
    """A language model of words."""

    encoder: str = "lstm"
    """The network: rnn, gru or lstm are torch.nn's; any cell or n-gram model of the zoo that reads in one direction."""
    hidden: int = Field(256, ge=1)
    """Size of its state."""
    embedding: int = Field(256, ge=1)
    """Size of the word vectors."""
    dropout: float = Field(0.4, ge=0.0, lt=1.0)
    """Share of features dropped in training."""


class LanguageModelling(LanguageTask):
    """Say which word comes next; see :class:`unrolled.lab.training.language_modelling.LanguageTask`."""

    name = "lm"
    description = "which word comes next: a language model of running text"
    kind = Words
    Architecture = WordModelSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {
        "batch": 20,
        "lr": 0.003,
        "schedule": "cosine",
        "epochs": 12,
    }
    metrics = (
        Metric("perplexity", "exp of the loss; each <eos>, a line's end, is a word", higher_is_better=False, unit=""),
        Metric("loss", "mean cross-entropy of a word, <eos> and <unk> counted", higher_is_better=False, unit="nats"),
        Metric("bits", "the same in bits", higher_is_better=False, unit="bits"),
    )

    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        """Give perplexity, nats and bits a word."""
        return {"perplexity": math.exp(loss) if loss < _LARGEST else math.inf, "loss": loss, "bits": loss / math.log(2)}

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Cut at spaces, and what is no word of the training text as treebanks do."""
        end = [END_OF_LINE] if END_OF_LINE in self.vocabulary else []
        words: list[str] = []
        for number, line in enumerate(text.split("\n")):
            words += end if number else []
            for piece in line.split():
                words += [piece] if piece in self.vocabulary else tokenise(piece)
        return tuple(words)

    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Put spaces between words, and a new line in the place of ``<eos>``."""
        gap = ""
        for token in tokens:
            if token == END_OF_LINE:
                yield "\n"
                gap = ""
            else:
                yield gap + token
                gap = " "
