"""Language modelling, character by character."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from unrolled.lab.data.corpus import END_OF_LINE, Characters
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, compose
from unrolled.lab.training.language_modelling import LanguageModelSettings, LanguageTask
from unrolled.lab.training.task import Metric

__all__ = ["CharacterModelSettings", "CharacterModelling"]

_NAMES = {"\n": END_OF_LINE, " ": "_"}
"""How the Penn Treebank's character files write two characters."""


class CharacterModelSettings(LanguageModelSettings):
    """Settings of a language model of characters."""

    hidden: int = Field(304, ge=1)
    """Size of the hidden state."""
    embedding: int = Field(64, ge=1)
    """Size of the character vectors."""
    dropout: float = Field(0.05, ge=0.0, lt=1.0)
    """Dropout: share of features set to 0 in training."""
    bptt: int = Field(50, ge=1)
    """Number of characters of truncated backpropagation through time; the hidden state is carried on."""
    tied: bool = False
    """Tie the output weights to the character vectors, through a projection if sizes differ."""


class CharacterModelling(LanguageTask):
    """Predict the next character; see :class:`unrolled.lab.training.language_modelling.LanguageTask`."""

    name = "chars"
    description = "language modelling: the next character of running text"
    kind = Characters
    never_generated = (PADDING, UNKNOWN)
    Architecture = CharacterModelSettings
    training_defaults: ClassVar[Mapping[str, Any]] = {
        "batch": 32,
        "lr": 0.003,
        "schedule": "cosine",
        "epochs": 12,
    }
    metrics = (
        Metric("bpc", "bits a character; spaces and line ends count", higher_is_better=False, unit="bits"),
        Metric("loss", "the same in nats", higher_is_better=False, unit="nats"),
    )

    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        return {"bpc": loss / math.log(2), "loss": loss}

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Split into characters; spaces and line ends get the names they have in the training text."""
        text = "".join(compose(text)) if self.vocabulary.composed else text
        return tuple(_NAMES[each] if each in _NAMES and each not in self.vocabulary else each for each in text)

    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Replace ``<eos>`` by a newline, and leave all other characters."""
        for token in tokens:
            yield "\n" if token == END_OF_LINE else token
