"""The catalogue: the only place where names meet classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from unrolled.datasets import DATASETS
from unrolled.datasets.tsv import read_tsv
from unrolled.errors import UnknownNameError, UsageError
from unrolled.models.classifier import Classifier
from unrolled.models.pooling import AttentionPooling, LastState, MaxPooling, MeanPooling
from unrolled.text.corpus import Classification
from unrolled.text.vocabulary import PADDING

__all__ = ["Architecture", "ClassifierConfig", "Config", "build", "load_dataset", "make_optimiser"]

_ENCODERS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_POOLINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "last": lambda directions, _: LastState(directions),
    "mean": lambda *_: MeanPooling(),
    "max": lambda *_: MaxPooling(),
    "attention": lambda _, features: AttentionPooling(features),
}
_OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}


_EMBEDDING_SCALE = 0.1


class Config(BaseModel):
    """Settings that are checked when they are made and cannot change afterwards.

    Raises:
        UsageError: for an unknown or missing key, or a value out of range; one line, with the nearest name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _one_line(error, type(self).model_fields) from None


class Architecture(Config):
    """What a classifier is made of, whatever the data. The defaults were chosen on SST-2's dev set."""

    encoder: Literal["rnn", "gru", "lstm"] = "gru"
    hidden: int = Field(128, ge=1)
    embedding: int = Field(128, ge=1)
    layers: int = Field(1, ge=1)
    bidirectional: bool = False
    pooling: Literal["last", "mean", "max", "attention"] = "last"
    dropout: float = Field(0.5, ge=0.0, lt=1.0)


class ClassifierConfig(Architecture):
    """All that is needed to build a classifier."""

    vocabulary: int = Field(ge=2)
    """How many words the embedding holds, ``<pad>`` and ``<unk>`` among them."""
    classes: int = Field(ge=2)


def build(config: ClassifierConfig) -> Classifier:
    """Build a classifier; its weights come from torch's global generator.

    Args:
        config: what it is made of.

    Returns:
        The classifier, untrained, in training mode.
    """
    directions = 2 if config.bidirectional else 1
    features = directions * config.hidden
    encoder = _ENCODERS[config.encoder](
        config.embedding,
        config.hidden,
        num_layers=config.layers,
        bidirectional=config.bidirectional,
        batch_first=True,
        dropout=config.dropout if config.layers > 1 else 0.0,  # torch warns of dropout that has no place
    )
    return Classifier(
        embedding=_embedding(config.vocabulary, config.embedding),
        encoder=encoder,
        pooling=_POOLINGS[config.pooling](directions, features),
        head=nn.Linear(features, config.classes),
        dropout=config.dropout,
    )


def _embedding(words: int, size: int) -> nn.Embedding:
    """Draw small word vectors: a word that training meets rarely, or never, then says little."""
    embedding = nn.Embedding(words, size, padding_idx=PADDING)
    with torch.no_grad():
        embedding.weight.mul_(_EMBEDDING_SCALE)
    return embedding


def make_optimiser(
    name: Literal["adam", "adagrad", "sgd"], parameters: Iterable[nn.Parameter], lr: float
) -> torch.optim.Optimizer:
    """Make an optimiser.

    Args:
        name: which.
        parameters: what it optimises.
        lr: its learning rate.

    Returns:
        The optimiser.
    """
    optimiser: Callable[..., torch.optim.Optimizer] = _OPTIMISERS[name]
    return optimiser(parameters, lr=lr, fused=True)  # eight times faster on a large embedding


def load_dataset(name: str, folder: Path | None = None) -> Classification:
    """Read a dataset by its name, or a file of the user's.

    Args:
        name: a member of ``unrolled.datasets``, or the path of a file that ends in ``.tsv``.
        folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.

    Returns:
        The dataset.
    """
    if name.endswith(".tsv"):
        return read_tsv(Path(name))
    source = DATASETS.get(name)
    corpus = source().read(folder)
    if not isinstance(corpus, Classification):
        raise UsageError(f"{name} is for another task; expected a dataset of texts and classes")
    return corpus


def _one_line(error: ValidationError, known: Iterable[str]) -> UsageError:
    """Say the first thing that is wrong, and what was expected."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    came = first["input"]
    match first["type"]:
        case "extra_forbidden":
            return UnknownNameError("setting", key, known)
        case "missing":
            return UsageError(f"the setting {key!r} is missing")
        case "literal_error":
            return UnknownNameError(key, str(came), re.findall(r"'([^']*)'", first["ctx"]["expected"]))
    expected = first["msg"].removeprefix("Input should be ")
    return UsageError(f"{key} is {came!r}; expected {expected}")
