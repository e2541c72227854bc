"""The network of an estimator: words or numbers, a recurrent network, pooling, a linear head."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.lab.models.factory import make_embedding_and_encoder, make_encoder, make_pooling, pooled_feature_count
from unrolled.lab.models.run_encoder import checked_lengths, run_encoder
from unrolled.lab.models.settings import PooledSettings

__all__ = ["Scale", "SequenceModel"]


class Scale(nn.Module):
    """Standardise numbers by the mean and standard deviation of the training sequences.

    Both are in float64, so that a time of 1.7e9 seconds keeps its seconds.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features, dtype=torch.float64))
        self.register_buffer("spread", torch.ones(features, dtype=torch.float64))

    def fit(self, values: NDArray[np.float64]) -> None:
        """Set both from all steps of all sequences, shape (steps, features); a constant feature has the spread 1."""
        peak = np.abs(values).max(axis=0)
        peak[peak == 0] = 1.0
        shares = values / peak  # of a constant exactly 1, and squares of large numbers do not overflow
        spread = peak * shares.std(axis=0)
        self.mean.copy_(torch.as_tensor(peak * shares.mean(axis=0)))
        self.spread.copy_(torch.as_tensor(np.where(spread > 0, spread, 1.0)))

    def standardise(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standardised numbers of a sequence, shape (time, features)."""
        return np.asarray((values - self.mean.numpy()) / self.spread.numpy())

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

    reader: nn.Module

    def __init__(self, settings: PooledSettings, words: int, features: int, outputs: int) -> None:
        super().__init__()
        if words:
            self.reader, self.encoder = make_embedding_and_encoder(settings, words)
        else:
            self.reader, self.encoder = Scale(features), make_encoder(settings, features)
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
