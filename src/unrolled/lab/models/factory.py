"""The catalogue: where the names in a model's settings meet classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from pydantic import Field, field_validator
from torch import nn

from unrolled.cells import CELLS, recurrent
from unrolled.composition import ENCODERS
from unrolled.composition.base import Encoder
from unrolled.composition.bidirectional import BidirectionalEncoder
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import AttentionPooling, LastState, MaxPooling, MeanPooling
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
]

_TORCH: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_NONLINEARITIES = ("tanh", "relu")
# A name that is both a cell and an encoder is the cell: the same model, which can be stacked and carries a state.
ENCODER_NAMES = tuple(sorted({*_TORCH, *CELLS.names(), *ENCODERS.names()}))
"""What an architecture may call its encoder."""
_POOLINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "last": lambda directions, _: LastState(directions),
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
    """What reads the tokens, whatever is made of it afterwards."""

    encoder: str = "gru"
    """The recurrent network: rnn, gru or lstm are torch.nn's; any cell or n-gram model of the zoo."""
    hidden: int = Field(128, ge=1)
    """Size of its state, for each direction."""
    embedding: int = Field(128, ge=1)
    """Size of the token vectors."""
    layers: int = Field(1, ge=1)
    """Recurrent layers, one on top of the other."""
    bidirectional: bool = False
    """Read from both ends."""
    dropout: float = Field(0.5, ge=0.0, lt=1.0)
    """Share of features dropped in training."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """The encoder's own options, such as choices=4 of mmlstm."""

    @field_validator("encoder")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ENCODER_NAMES:
            raise UnknownNameError("encoder", name, ENCODER_NAMES)
        return name


class PooledSettings(EncoderSettings):
    """What reads a text into one vector, from which something is said of the whole."""

    pooling: str = "last"
    """What is read out: the last state, or the mean, max or attention over all."""
    word_dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of words read as <unk> in training, which is what teaches the network that word."""

    @field_validator("pooling")
    @classmethod
    def _pooling(cls, name: str) -> str:
        if name not in _POOLINGS:
            raise UnknownNameError("pooling", name, _POOLINGS)
        return name


def make_embedding(words: int, size: int) -> nn.Embedding:
    """Draw small word vectors: a word that training meets rarely, or never, then says little.

    Args:
        words: how many.
        size: of a vector.

    Returns:
        The embedding; the vector of padding is zero.
    """
    embedding = nn.Embedding(words, size, padding_idx=PADDING)
    with torch.no_grad():
        embedding.weight.mul_(_EMBEDDING_SCALE)
    return embedding


def make_encoder(encoding: EncoderSettings, input_size: int) -> nn.Module:
    """Build an encoder, batch first; its weights come from torch's global generator.

    Args:
        encoding: which, and its sizes.
        input_size: of a token's vector.

    Returns:
        A network called as torch.nn's are, that takes packed sequences and gives (directions · hidden) features a
        token. A cell's ``num_layers`` are stacked; an n-gram model has one layer.

    Raises:
        UsageError: when the encoder has no such option, or not that value of it, or no layers to stack.
    """
    name, hidden, layers = encoding.encoder, encoding.hidden, encoding.layers
    between = encoding.dropout if layers > 1 else 0.0  # torch warns of dropout that has no place
    if name in _TORCH:
        _check_options(encoding, ("nonlinearity",) if name == "rnn" else ())
        options: dict[str, Any] = dict(encoding.options)
        if options.get("nonlinearity", "tanh") not in _NONLINEARITIES:
            raise UnknownNameError("nonlinearity", str(options["nonlinearity"]), _NONLINEARITIES)
        return _TORCH[name](
            input_size,
            hidden,
            num_layers=layers,
            bidirectional=encoding.bidirectional,
            batch_first=True,
            dropout=between,
            **options,
        )
    if name in CELLS.members:
        _check_options(encoding, _parameters(CELLS.get(name)))
        return recurrent(
            name,
            input_size,
            hidden,
            layers,
            encoding.bidirectional,
            between,
            batch_first=True,
            **encoding.options,  # type: ignore[arg-type]  # options are each cell's own
        )
    if layers > 1:
        raise UsageError(f"layers is {layers}; expected 1, as {name} is no recurrent network to be stacked")
    member = ENCODERS.get(name)
    _check_options(encoding, _parameters(member))

    def one() -> Any:
        return member(input_size, hidden, **encoding.options)  # type: ignore[arg-type]  # options are each member's own

    return BidirectionalEncoder(one(), one()) if encoding.bidirectional else one()


def _parameters(member: type) -> tuple[str, ...]:
    """The options of a member of a zoo, beyond what is common to all of them."""
    return tuple(inspect.signature(member).parameters.keys() - {"input_size", "hidden_size", "batch_first"})


def _check_options(encoding: EncoderSettings, known: Iterable[str]) -> None:
    names = tuple(known)
    for key in encoding.options:
        if key not in names:
            if not names:
                raise UsageError(f"{encoding.encoder} was given the option {key!r}; expected none")
            raise UnknownNameError(f"option of {encoding.encoder}", key, names)


def make_embedding_and_encoder(
    encoding: EncoderSettings, words: int, beside: int = 0
) -> tuple[nn.Embedding, nn.Module]:
    """Build an embedding and an encoder that suit each other; their weights come from torch's global generator.

    Args:
        encoding: what they are made of.
        words: of the vocabulary.
        beside: how many further features of a token the encoder reads.

    Returns:
        The embedding and the encoder.
    """
    embedding = make_embedding(words, encoding.embedding)
    encoder = make_encoder(encoding, encoding.embedding + beside)
    for part in encoder.modules():
        if isinstance(part, Encoder):
            part.initialise(embedding)
    return embedding, encoder


def feature_count(encoding: EncoderSettings) -> int:
    """Count the features that an encoder gives each token.

    Args:
        encoding: which, and its sizes.

    Returns:
        Those of all directions together.
    """
    return encoding.hidden * (2 if encoding.bidirectional else 1)


def make_pooling(architecture: PooledSettings) -> nn.Module:
    """Build what makes one vector of all states.

    Args:
        architecture: which, and the sizes of the states.

    Returns:
        A pooling of :mod:`unrolled.lab.models.pooling`.
    """
    return _POOLINGS[architecture.pooling](2 if architecture.bidirectional else 1, feature_count(architecture))


def make_classifier(architecture: PooledSettings, words: int, outputs: int) -> Classifier:
    """Build what says something of a whole text; its weights come from torch's global generator.

    Args:
        architecture: what it is made of.
        words: of its vocabulary.
        outputs: how many numbers it gives: a logit a class, or one.

    Returns:
        The model, untrained, in training mode.
    """
    size = feature_count(architecture)
    embedding, encoder = make_embedding_and_encoder(architecture, words)
    return Classifier(
        embedding=embedding,
        encoder=encoder,
        pooling=make_pooling(architecture),
        head=nn.Linear(size, outputs),
        dropout=architecture.dropout,
        word_dropout=architecture.word_dropout,
    )


def make_optimiser(name: str, parameters: Iterable[Any], lr: float, **options: Any) -> torch.optim.Optimizer:
    """Make an optimiser.

    Args:
        name: which.
        parameters: what it optimises, or groups of them.
        lr: its learning rate.
        **options: further settings of its own.

    Returns:
        The optimiser.

    Raises:
        UnknownNameError: when there is none of that name.
    """
    if name not in _OPTIMISERS:
        raise UnknownNameError("optimiser", name, _OPTIMISERS)
    optimiser: Callable[..., torch.optim.Optimizer] = _OPTIMISERS[name]
    return optimiser(parameters, lr=lr, fused=True, **options)  # eight times faster on a large embedding
