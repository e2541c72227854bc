"""Predict running text character by character."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from unrolled.lab.data.corpus import END_OF_LINE, Characters
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN
from unrolled.lab.training.language_modelling import LanguageModelSettings, LanguageTask
from unrolled.lab.training.task import Metric

__all__ = ["CharacterModelSettings", "CharacterModelling"]

_NAMES = {"\n": END_OF_LINE, " ": "_"}
"""What the Penn Treebank's character files have in the place of two characters."""


class CharacterModelSettings(LanguageModelSettings):
    """A language model of characters."""

    encoder: str = "lstm"
    """The network: rnn, gru or lstm are torch.nn's; any cell or n-gram model of the zoo that reads in one direction."""
    hidden: int = Field(304, ge=1)
    """Size of its state."""
    embedding: int = Field(64, ge=1)
    """Size of the character vectors."""
    dropout: float = Field(0.05, ge=0.0, lt=1.0)
    """Share of features dropped in training."""
    bptt: int = Field(50, ge=1)
    """Characters through which the gradient flows back; the state flows on."""
    tied: bool = False
    """Predict with the character vectors themselves, through a projection where sizes differ."""


class CharacterModelling(LanguageTask):
    """Say which character comes next; see :class:`unrolled.lab.training.language_modelling.LanguageTask`."""

    name = "chars"
    description = "which character comes next: a language model of running text"
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
        Metric("bpc", "bits a character; all count, spaces and line ends too", higher_is_better=False, unit="bits"),
        Metric("loss", "the same in nats", higher_is_better=False, unit="nats"),
    )

    def metrics_from_loss(self, loss: float) -> dict[str, float]:
        """Give bits and nats a character."""
        return {"bpc": loss / math.log(2), "loss": loss}

    def tokenise(self, text: str) -> tuple[str, ...]:
        """Take every character; spaces and line ends by the names that the training text has for them."""
        return tuple(_NAMES[each] if each in _NAMES and each not in self.vocabulary else each for each in text)

    def detokenise(self, tokens: Iterable[str]) -> Iterator[str]:
        """Leave characters as they are, but for ``<eos>``, a line's end."""
        for token in tokens:
            yield "\n" if token == END_OF_LINE else token
