"""Build models, encoders and optimisers from their settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from unrolled.cells import CELLS, recurrent
from unrolled.composition import ENCODERS
from unrolled.composition.base import BidirectionalEncoder, Encoder
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.encoder_names import TORCH_NETWORKS
from unrolled.lab.models.identity_start import start_at_identity
from unrolled.lab.models.orthogonal_start import start_orthogonal
from unrolled.lab.models.pooling import POOLINGS
from unrolled.lab.models.quick_optimisers import without_compiler
from unrolled.lab.models.settings import EncoderSettings, PooledSettings

__all__ = [
    "feature_count",
    "make_classifier",
    "make_embedding",
    "make_embedding_and_encoder",
    "make_encoder",
    "make_optimiser",
    "make_pooling",
    "pooled_feature_count",
]

_NONLINEARITIES = ("tanh", "relu")
_OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": without_compiler(torch.optim.Adam),
    "adamw": without_compiler(torch.optim.AdamW),
    "adagrad": without_compiler(torch.optim.Adagrad),
    "sgd": without_compiler(torch.optim.SGD),
}
_EMBEDDING_SCALE = 0.1


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
        UsageError: The encoder does not have an option or its value, or cannot be stacked. Or it cannot start at the
            identity, has no matrix that starts orthogonal, or is to start in both ways.
    """
    encoder = _make_encoder(settings, input_size)
    if settings.identity and settings.orthogonal:
        raise UsageError("identity and orthogonal are both True; expected one start of the weights at most")
    if settings.identity:
        start_at_identity(encoder, settings.encoder)
    if settings.orthogonal:
        start_orthogonal(encoder, settings.encoder)
    return encoder


def _make_encoder(settings: EncoderSettings, input_size: int) -> nn.Module:
    if settings.encoder in TORCH_NETWORKS:
        return _torch_network(settings, input_size)
    if settings.encoder in CELLS.members:
        return _network_of_cells(settings, input_size)
    return _ngram_model(settings, input_size)


def _between(settings: EncoderSettings) -> float:
    """Return the dropout between layers; torch warns about some between the layers of one layer."""
    return settings.dropout if settings.layers > 1 else 0.0


def _torch_network(settings: EncoderSettings, input_size: int) -> nn.Module:
    name = settings.encoder
    _check_options(settings, ("bias", "nonlinearity") if name == "rnn" else ("bias",))
    options: dict[str, Any] = {"bias": True} | settings.options
    options["bias"] = bool(options["bias"])  # torch refuses 1 and 0
    if options.get("nonlinearity", "tanh") not in _NONLINEARITIES:
        raise UnknownNameError("nonlinearity", str(options["nonlinearity"]), _NONLINEARITIES)
    return TORCH_NETWORKS[name](
        input_size,
        settings.hidden,
        num_layers=settings.layers,
        bidirectional=settings.bidirectional,
        batch_first=True,
        dropout=_between(settings),
        **options,
    )


def _network_of_cells(settings: EncoderSettings, input_size: int) -> nn.Module:
    _check_options(settings, _parameters(CELLS.get(settings.encoder)))
    return recurrent(
        settings.encoder,
        input_size,
        settings.hidden,
        settings.layers,
        settings.bidirectional,
        _between(settings),
        batch_first=True,
        **settings.options,  # type: ignore[arg-type]  # options differ by cell
    )


def _ngram_model(settings: EncoderSettings, input_size: int) -> nn.Module:
    """Build an encoder that is no recurrent network: an n-gram composition model, or a baseline."""
    if settings.layers > 1:
        raise UsageError(
            f"layers is {settings.layers}; expected 1, because {settings.encoder} is not a recurrent network and "
            "cannot be stacked"
        )
    member = ENCODERS.get(settings.encoder)
    _check_options(settings, _parameters(member))

    def one() -> Any:
        return member(input_size, settings.hidden, **settings.options)  # type: ignore[arg-type]  # differ by encoder

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
    if settings.options.get("bias", True) not in (True, False):  # 1 and 0, which runs have, are these
        raise UsageError(f"bias is {settings.options['bias']!r}; expected true or false")


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
    return POOLINGS[settings.pooling](2 if settings.bidirectional else 1, feature_count(settings))


def make_classifier(
    settings: PooledSettings, words: int, outputs: int, head: Callable[[int, int], nn.Module] = nn.Linear
) -> Classifier:
    """Build an untrained model of whole texts, with random weights from torch's global generator.

    Args:
        settings: The settings of its parts.
        words: Size of the vocabulary.
        outputs: Number of outputs: a logit for each class, or one number.
        head: Builds the last layer from its numbers of features and outputs.

    Returns:
        The model, in training mode.
    """
    embedding, encoder = make_embedding_and_encoder(settings, words)
    return Classifier(
        embedding=embedding,
        encoder=encoder,
        pooling=make_pooling(settings),
        head=head(pooled_feature_count(settings), outputs),
        dropout=settings.dropout,
        word_dropout=settings.word_dropout,
    )


def make_optimiser(name: str, parameters: Iterable[Any], lr: float, **options: Any) -> torch.optim.Optimizer:
    """Build an optimiser that the training settings name; ``parameters`` may be groups, ``options`` are its own."""
    optimiser: Callable[..., torch.optim.Optimizer] = _OPTIMISERS[name]
    return optimiser(parameters, lr=lr, fused=True, **options)  # fused: eight times faster on a large embedding
