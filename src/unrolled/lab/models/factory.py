"""Build models, encoders and optimisers from their settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer
from torch import nn

from unrolled.cells import CELLS, recurrent
from unrolled.composition import ENCODERS
from unrolled.composition.base import BidirectionalEncoder, Encoder
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.identity_start import start_at_identity
from unrolled.lab.models.pooling import AttentionPooling, EndStates, LastState, MaxPooling, MeanPooling
from unrolled.lab.settings import Settings

__all__ = [
    "ENCODER_NAMES",
    "EncoderSettings",
    "PooledSettings",
    "feature_count",
    "make_classifier",
    "make_embedding",
    "make_embedding_and_encoder",
    "make_encoder",
    "make_optimiser",
    "make_pooling",
    "pooled_feature_count",
]

_TORCH: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_NONLINEARITIES = ("tanh", "relu")
# A name that is both a cell and an encoder means the cell: it is the same model, can be stacked and has a state.
ENCODER_NAMES = tuple(sorted({*_TORCH, *CELLS.names(), *ENCODERS.names()}))
"""The names of all encoders."""
_POOLINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "last": lambda directions, _: LastState(directions),
    "ends": lambda *_: EndStates(),
    "mean": lambda *_: MeanPooling(),
    "max": lambda *_: MaxPooling(),
    "attention": lambda _, features: AttentionPooling(features),
}
_OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}
_EMBEDDING_SCALE = 0.1


class EncoderSettings(Settings):
    """The encoder and the embedding of a model."""

    encoder: str = "gru"
    """The recurrent network: rnn, gru or lstm from torch.nn, or any cell or n-gram model of this package."""
    hidden: int = Field(128, ge=1)
    """Size of the hidden state in each direction."""
    embedding: int = Field(128, ge=1)
    """Size of the token vectors."""
    layers: int = Field(1, ge=1)
    """Number of stacked recurrent layers."""
    bidirectional: bool = False
    """Read in both directions."""
    dropout: float = Field(0.5, ge=0.0, lt=1.0)
    """Dropout probability of features in training."""
    identity: bool = False
    """Start recurrent weights at the identity and biases at zero; for rnn and elman, usually with nonlinearity=relu."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Options of the encoder, such as choices=4 for mmlstm."""

    @field_validator("encoder")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ENCODER_NAMES:
            raise UnknownNameError("encoder", name, ENCODER_NAMES)
        return name

    @model_serializer(mode="wrap")
    def _serialise(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out identity where it is off: recorded trials, which are named by their settings, lack it."""
        record: dict[str, Any] = serialise(self)
        if not record.get("identity"):
            record.pop("identity", None)
        return record


class PooledSettings(EncoderSettings):
    """An encoder and the pooling of its states to one vector for a whole text."""

    pooling: str = "last"
    """How states become one vector: the last state, the two ends, or the mean, max or attention over all states."""
    word_dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Probability that training replaces a word by <unk>, so that the network learns that token."""

    @field_validator("pooling")
    @classmethod
    def _pooling(cls, name: str) -> str:
        if name not in _POOLINGS:
            raise UnknownNameError("pooling", name, _POOLINGS)
        return name


def make_embedding(words: int, size: int) -> nn.Embedding:
    """Build word vectors with small initial values, so that rare words have little effect; padding is zero."""
    embedding = nn.Embedding(words, size, padding_idx=PADDING)
    with torch.no_grad():
        embedding.weight.mul_(_EMBEDDING_SCALE)
    return embedding


def make_encoder(settings: EncoderSettings, input_size: int) -> nn.Module:
    """Build a batch-first encoder, with random weights from torch's global generator.

    Args:
        settings: The encoder's name, sizes and options.
        input_size: Size of a token vector.

    Returns:
        A network with the interface of torch.nn's, which accepts packed sequences and returns (directions · hidden)
        features for each token.

    Raises:
        UsageError: The encoder does not have an option, or not that value of it, cannot be stacked, or cannot start at
            the identity.
    """
    encoder = _make_encoder(settings, input_size)
    if settings.identity:
        start_at_identity(encoder, settings.encoder)
    return encoder


def _make_encoder(settings: EncoderSettings, input_size: int) -> nn.Module:
    name, hidden, layers = settings.encoder, settings.hidden, settings.layers
    between = settings.dropout if layers > 1 else 0.0  # torch warns about dropout between layers of one layer
    if name in _TORCH:
        _check_options(settings, ("nonlinearity",) if name == "rnn" else ())
        options: dict[str, Any] = dict(settings.options)
        if options.get("nonlinearity", "tanh") not in _NONLINEARITIES:
            raise UnknownNameError("nonlinearity", str(options["nonlinearity"]), _NONLINEARITIES)
        return _TORCH[name](
            input_size,
            hidden,
            num_layers=layers,
            bidirectional=settings.bidirectional,
            batch_first=True,
            dropout=between,
            **options,
        )
    if name in CELLS.members:
        _check_options(settings, _parameters(CELLS.get(name)))
        return recurrent(
            name,
            input_size,
            hidden,
            layers,
            settings.bidirectional,
            between,
            batch_first=True,
            **settings.options,  # type: ignore[arg-type]  # options differ by cell
        )
    if layers > 1:
        raise UsageError(
            f"layers is {layers}; expected 1, because {name} is not a recurrent network and cannot be stacked"
        )
    member = ENCODERS.get(name)
    _check_options(settings, _parameters(member))

    def one() -> Any:
        return member(input_size, hidden, **settings.options)  # type: ignore[arg-type]  # options differ by encoder

    return BidirectionalEncoder(one(), one()) if settings.bidirectional else one()


def _parameters(member: type) -> tuple[str, ...]:
    """Return the options of a cell or encoder beyond those that all of them have."""
    return tuple(inspect.signature(member).parameters.keys() - {"input_size", "hidden_size", "batch_first"})


def _check_options(settings: EncoderSettings, known: Iterable[str]) -> None:
    names = tuple(known)
    for key in settings.options:
        if key not in names:
            if not names:
                raise UsageError(f"{settings.encoder} has no options; remove the option {key!r}")
            raise UnknownNameError(f"option of {settings.encoder}", key, names)


def make_embedding_and_encoder(
    settings: EncoderSettings, words: int, extra_features: int = 0
) -> tuple[nn.Embedding, nn.Module]:
    """Build an embedding of ``words`` words and an encoder that also reads ``extra_features`` per token."""
    embedding = make_embedding(words, settings.embedding)
    encoder = make_encoder(settings, settings.embedding + extra_features)
    for part in encoder.modules():
        if isinstance(part, Encoder):
            part.initialise(embedding)
    return embedding, encoder


def feature_count(settings: EncoderSettings) -> int:
    """Return the number of features of an encoder's output, over all directions."""
    return settings.hidden * (2 if settings.bidirectional else 1)


def pooled_feature_count(settings: PooledSettings) -> int:
    """Return the number of features of the vector of a whole text."""
    return feature_count(settings) * (2 if settings.pooling == "ends" else 1)


def make_pooling(settings: PooledSettings) -> nn.Module:
    """Build a pooling of :mod:`unrolled.lab.models.pooling`."""
    return _POOLINGS[settings.pooling](2 if settings.bidirectional else 1, feature_count(settings))


def make_classifier(settings: PooledSettings, words: int, outputs: int) -> Classifier:
    """Build an untrained model of whole texts, with random weights from torch's global generator.

    Args:
        settings: The settings of its parts.
        words: Size of the vocabulary.
        outputs: Number of outputs: a logit for each class, or one number.

    Returns:
        The model, in training mode.
    """
    embedding, encoder = make_embedding_and_encoder(settings, words)
    return Classifier(
        embedding=embedding,
        encoder=encoder,
        pooling=make_pooling(settings),
        head=nn.Linear(pooled_feature_count(settings), outputs),
        dropout=settings.dropout,
        word_dropout=settings.word_dropout,
    )


def make_optimiser(name: str, parameters: Iterable[Any], lr: float, **options: Any) -> torch.optim.Optimizer:
    """Build an optimiser by name; ``parameters`` may be groups, ``options`` are its own settings.

    Raises:
        UnknownNameError: There is no such optimiser.
    """
    if name not in _OPTIMISERS:
        raise UnknownNameError("optimiser", name, _OPTIMISERS)
    optimiser: Callable[..., torch.optim.Optimizer] = _OPTIMISERS[name]
    return optimiser(parameters, lr=lr, fused=True, **options)  # fused: eight times faster on a large embedding
