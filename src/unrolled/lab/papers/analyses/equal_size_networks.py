"""The networks of equal size that Second-order RNNs compares as language models, with its published numbers.

Source:
    Second-order RNNs, sections 2, 3 and 5, tables 1 and 2 without their Dyck rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["RELATED", "UNITS", "Network", "Published", "Unit"]


@dataclass(frozen=True)
class Network:
    """A network, by its title in tables."""

    title: str
    encoder: str
    layers: int

    @property
    def cell(self) -> str:
        """The cell whose parameters are counted."""
        return "elman" if self.encoder == "rnn" else self.encoder


@dataclass(frozen=True)
class Published(Network):
    """One row of tables 1 and 2."""

    hidden: int
    minutes: int
    """Of training, on a Tesla M60."""
    epochs: int
    score: float


RELATED = (
    Network("tensor RNN", "tensor_rnn", 1), Network("MI-LSTM", "mi_lstm", 1), Network("MI-RNN", "mi_rnn", 1)
)  # fmt: skip
"""Networks of related work (sections 2 and 3), of which the paper has no numbers."""


@dataclass(frozen=True)
class Unit:
    """Characters or words."""

    task: str
    measure: str
    unit: str
    budget: int
    """Number of parameters of each network."""
    embedding: int
    logarithm: Literal["nats", "bits"]
    types: int
    """Number of types of the paper's text, to count its own networks."""
    rows: tuple[Published, ...]

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks of the tables and those of related work."""
        return (*self.rows, *RELATED)


UNITS = {
    "characters": Unit(
        "chars", "bpc", "bits per character", 4_500_000, 128, "bits", 50,
        (
            Published("mmLSTM", "mmlstm", 1, 512, 108, 20, 1.301),
            Published("LSTM", "lstm", 1, 991, 43, 18, 1.308),
            Published("mmRNN", "mmrnn", 1, 1038, 107, 20, 1.361),
            Published("RNN", "rnn", 1, 2032, 59, 26, 1.419),
            Published("mLSTM", "mlstm", 1, 977, 53, 9, 1.450),
            Published("mRNN", "mrnn", 1, 1972, 51, 7, 1.460),
            Published("mmLSTM, 2 layers", "mmlstm", 2, 345, 252, 25, 1.288),
            Published("LSTM, 2 layers", "lstm", 2, 589, 57, 22, 1.283),
            Published("mmRNN, 2 layers", "mmrnn", 2, 696, 247, 22, 1.333),
            Published("RNN, 2 layers", "rnn", 2, 1194, 58, 23, 1.369),
        ),
    ),
    "words": Unit(
        "lm", "loss", "nats per word", 2_000_000, 64, "nats", 10_000,
        (
            Published("mmLSTM", "mmlstm", 1, 112, 20, 33, 4.794),
            Published("LSTM", "lstm", 1, 125, 10, 33, 4.816),
            Published("mmRNN", "mmrnn", 1, 128, 11, 24, 4.822),
            Published("RNN", "rnn", 1, 133, 9, 29, 4.847),
            Published("mmLSTM, 2 layers", "mmlstm", 2, 97, 59, 50, 4.818),
            Published("LSTM, 2 layers", "lstm", 2, 115, 16, 47, 4.770),
        ),
    ),
}  # fmt: skip
