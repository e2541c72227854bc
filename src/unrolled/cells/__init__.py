"""Recurrent cells by name, and networks of them."""

from __future__ import annotations

import torch

from unrolled.cells.base import Cell
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UsageError
from unrolled.kernels.cuda_graphs import cuda_graphs
from unrolled.registry import Registry

__all__ = ["CELLS", "cuda_graphs", "list", "recurrent"]

CELLS: Registry[Cell] = Registry(__name__, Cell, "cell")  # type: ignore[type-abstract]  # members are concrete


def list() -> tuple[str, ...]:
    """Return the names that :func:`recurrent` accepts, in alphabetical order.

    Example:
        >>> import unrolled.cells
        >>> unrolled.cells.list()[:3]
        ('approx_gru', 'approx_lstm', 'dyck')
    """
    return CELLS.names()


def recurrent(
    name: str | type[Cell],
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
    """Build a network of cells with the interface of ``nn.LSTM``.

    Args:
        name: Name of the cell; :func:`list` returns all names. Or the class of a cell of your own, which takes an input
            size and a hidden size.
        input_size: Length of each input vector.
        hidden_size: Number of units in each layer and direction.
        num_layers: Number of layers.
        bidirectional: Whether each layer has a second, backward direction.
        dropout: Share of the outputs of every layer but the last that is dropped in training.
        batch_first: Whether padded inputs and outputs have shape (batch, time, …).
        device: Device of the weights.
        dtype: Type of the weights, a floating type.
        **options: Further arguments of the cell, such as ``choices=4`` of ``mmlstm``.

    Raises:
        UsageError: If there is no such cell, the cell has no such option, or a value is not allowed; if the class is
            none of a :class:`~unrolled.cells.base.Cell`.

    Example:
        >>> import torch, unrolled.cells
        >>> rnn = unrolled.cells.recurrent("mlstm", 128, 256, num_layers=2, bidirectional=True)
        >>> outputs, (h_n, c_n) = rnn(torch.randn(7, 3, 128))
        >>> outputs.shape
        torch.Size([7, 3, 512])
    """
    cell = _own(name) if isinstance(name, type) else CELLS.get(name)
    return Recurrent(
        cell, input_size, hidden_size, num_layers, bidirectional, dropout, batch_first, device, dtype, **options
    )


def _own(kind: type[object]) -> type[Cell]:
    """Return a user's class of cells; UsageError for any other class."""
    if issubclass(kind, Cell):
        return kind
    raise UsageError(
        f"{kind.__name__} does not derive from unrolled.cells.base.Cell; derive it, with a step(inputs, state), or "
        "loop over it yourself: explain and account open such a loop as it is"
    )
