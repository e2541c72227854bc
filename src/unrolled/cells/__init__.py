"""The zoo of recurrent cells: one a file, found by listing."""

from __future__ import annotations

import torch

from unrolled.cells.base import Cell
from unrolled.cells.recurrent import Recurrent
from unrolled.kernels.cuda_graphs import cuda_graphs
from unrolled.registry import Registry

__all__ = ["CELLS", "cuda_graphs", "list", "recurrent"]

CELLS: Registry[Cell] = Registry(__name__, Cell, "cell")  # type: ignore[type-abstract]  # members are concrete


def list() -> tuple[str, ...]:
    """Name every cell.

    Returns:
        The names that :func:`recurrent` takes, in alphabetical order.
    """
    return CELLS.names()


def recurrent(
    name: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bidirectional: bool = False,
    dropout: float = 0.0,
    batch_first: bool = False,
    device: torch.device | str | int | None = None,
    dtype: torch.dtype | None = None,
    **options: object,
) -> Recurrent:
    """Build a network of the cells of that name, to stand where an ``nn.LSTM`` stood.

    Args:
        name: a cell's name, as :func:`list` gives them.
        input_size: e.
        hidden_size: d, for each layer and direction.
        num_layers: how many layers.
        bidirectional: whether each layer reads both ways.
        dropout: the share of every layer's outputs but the last's that is dropped in training.
        batch_first: whether padded inputs and outputs are (batch, time, …).
        device: where the weights are to be.
        dtype: what they are to be in, a floating type.
        **options: further arguments of the cell, such as ``choices=4`` of the multi-matrix ones.

    Returns:
        The network.

    Raises:
        UsageError: when there is no such cell, no such option of it, or not that value.

    Example:
        >>> import torch, unrolled.cells
        >>> rnn = unrolled.cells.recurrent("mlstm", 128, 256, num_layers=2, bidirectional=True)
        >>> outputs, (h_n, c_n) = rnn(torch.randn(7, 3, 128))
        >>> outputs.shape
        torch.Size([7, 3, 512])
    """
    return Recurrent(
        CELLS.get(name),
        input_size,
        hidden_size,
        num_layers,
        bidirectional,
        dropout,
        batch_first,
        device,
        dtype,
        **options,
    )
