"""The names of all encoders: torch's networks, the cells and the n-gram models of this package."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from unrolled.cells import CELLS
from unrolled.composition import ENCODERS

__all__ = ["ENCODER_NAMES", "TORCH_NETWORKS"]

TORCH_NETWORKS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
# A name that is both a cell and an encoder means the cell: it is the same model, can be stacked and has a state.
ENCODER_NAMES = tuple(sorted({*TORCH_NETWORKS, *CELLS.names(), *ENCODERS.names()}))
"""The names of all encoders."""
