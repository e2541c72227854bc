"""The settings of a model: what is read for the help of a command, without torch."""

from __future__ import annotations

from pydantic import Field, field_validator

from unrolled.errors import UnknownNameError
from unrolled.lab.settings import Settings

__all__ = ["MOST_LAYERS", "EncoderSettings", "PooledSettings"]

MOST_LAYERS = 1000
"""A settings file of another person may ask for a million, which would take the memory before it fails."""


class EncoderSettings(Settings):
    """The encoder and the embedding of a model."""

    later = ("identity", "orthogonal")
    encoder: str = "gru"
    """The recurrent network: rnn, gru or lstm from torch.nn, or any cell or n-gram model of this package."""
    hidden: int = Field(128, ge=1)
    """Size of the hidden state in each direction."""
    embedding: int = Field(128, ge=1)
    """Size of the token vectors."""
    layers: int = Field(1, ge=1, le=MOST_LAYERS)
    """Number of stacked recurrent layers."""
    bidirectional: bool = False
    """Read in both directions."""
    dropout: float = Field(0.5, ge=0.0, lt=1.0)
    """Dropout probability of features in training."""
    identity: bool = False
    """Start recurrent weights at the identity and biases at zero; for rnn and elman, usually with nonlinearity=relu."""
    orthogonal: bool = False
    """Start the encoder's matrices orthogonal, that of several gates as one."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Options of the encoder, such as choices=4 for mmlstm."""

    @field_validator("encoder")
    @classmethod
    def _known(cls, name: str) -> str:
        from unrolled.lab.models.encoder_names import ENCODER_NAMES

        if name not in ENCODER_NAMES:
            raise UnknownNameError("encoder", name, ENCODER_NAMES)
        return name


class PooledSettings(EncoderSettings):
    """An encoder and the pooling of its states to one vector for a whole text."""

    pooling: str = "last"
    """How states become one vector: the last state, the two ends, or the mean, max or attention over all states."""
    word_dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Probability that training replaces a word by <unk>, so that the network learns that token."""

    @field_validator("pooling")
    @classmethod
    def _pooling(cls, name: str) -> str:
        from unrolled.lab.models.pooling import POOLINGS

        if name not in POOLINGS:
            raise UnknownNameError("pooling", name, POOLINGS)
        return name
