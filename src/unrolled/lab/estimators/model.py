"""The network of an estimator: words or numbers, a recurrent network, pooling, a linear head."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from unrolled.lab.models.factory import (
    PooledSettings,
    make_embedding,
    make_encoder,
    make_pooling,
    pooled_feature_count,
)
from unrolled.lab.models.run_encoder import checked_lengths, run_encoder

__all__ = ["Scale", "SequenceModel"]


class Scale(nn.Module):
    """Standardise numbers by the mean and standard deviation of the training sequences."""

    mean: Tensor
    spread: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("spread", torch.ones(features))

    def fit(self, values: Tensor) -> None:
        """Set both from all steps of all sequences, shape (steps, features)."""
        self.mean.copy_(values.mean(dim=0))
        spread = values.std(dim=0, correction=0)
        self.spread.copy_(torch.where(spread > 0, spread, torch.ones_like(spread)))

    def forward(self, values: Tensor) -> Tensor:
        """Return standardised values of the same shape."""
        return (values - self.mean) / self.spread


class SequenceModel(nn.Module):
    """From padded sequences to outputs.

    Args:
        settings: The settings of the encoder and the pooling.
        words: Size of the vocabulary, or 0 for sequences of numbers.
        features: Number of features of a step, for sequences of numbers.
        outputs: Number of outputs.
    """

    def __init__(self, settings: PooledSettings, words: int, features: int, outputs: int) -> None:
        super().__init__()
        self.reader = make_embedding(words, settings.embedding) if words else Scale(features)
        self.encoder = make_encoder(settings, settings.embedding if words else features)
        self.pooling = make_pooling(settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(pooled_feature_count(settings), outputs)

    def behind_reader(self) -> SequenceModel:
        """Return the same model without its reader: it takes word vectors, or standardised numbers."""
        model = copy.copy(self)
        model._modules = {**self._modules, "reader": nn.Identity()}
        return model

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the outputs, shape (batch, outputs).

        Args:
            values: Word indices, shape (batch, time), or numbers, shape (batch, time, features).
            lengths: Number of steps of each sequence, shape (batch,); the full time when omitted.
        """
        lengths = checked_lengths(lengths, values.shape)
        states = run_encoder(self.encoder, self.dropout(self.reader(values)), lengths)
        outputs: Tensor = self.head(self.dropout(self.pooling(states, lengths)))
        return outputs
