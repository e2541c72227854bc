"""The layers of a network as cells, which share its weights."""

from __future__ import annotations

import copy

import torch
from torch import nn

from unrolled.cells import CELLS
from unrolled.cells.base import Cell
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.opening.recurrent_twin import quantised_kind
from unrolled.errors import UsageError, kind_of
from unrolled.model_runs.eval_mode import eval_copy, eval_mode

__all__ = ["Network", "build_cells", "cell_type", "eval_cell"]

Network = nn.RNNBase | Recurrent
"""The networks that can be opened; the two classes have the same interface."""


def cell_type(rnn: nn.RNNBase) -> type[ClosedCell]:
    """Return the cell class that a network of torch.nn consists of."""
    for cell in CELLS.members.values():
        if issubclass(cell, ClosedCell) and cell.torch_type and isinstance(rnn, cell.torch_type):
            return cell
    if quantised_kind(rnn) is not None:
        raise UsageError(
            f"the network is a quantised {type(rnn).__name__}; pass the network that it was quantised from"
        )
    raise UsageError(f"the network is {kind_of(rnn)}; expected torch.nn.RNN, GRU or LSTM, or a cell of unrolled.cells")


def build_cells(rnn: Network, dtype: torch.dtype) -> list[tuple[Cell, ...]]:
    """Build the cells of each layer, lowest first: forward and, if bidirectional, backward.

    They share the network's weights where those have ``dtype`` already, and stay in evaluation mode.
    """
    ways = range(2 if rnn.bidirectional else 1)
    if isinstance(rnn, Recurrent):
        return [tuple(eval_cell(rnn.cell(level, way), dtype) for way in ways) for level in range(rnn.num_layers)]
    kind = cell_type(rnn)
    with eval_mode(rnn):
        return [tuple(kind.from_torch(rnn, level, way == 1, dtype) for way in ways) for level in range(rnn.num_layers)]


def eval_cell(cell: Cell, dtype: torch.dtype) -> Cell:
    """Return a cell in evaluation mode whose weights have a type; it shares the given one's where those have it."""
    twin = eval_copy(cell)
    return twin if all(p.dtype == dtype for p in twin.parameters()) else copy.deepcopy(twin).to(dtype)
