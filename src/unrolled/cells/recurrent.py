"""A network of cells with the interface of ``nn.LSTM``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell, checked_dropout, checked_size
from unrolled.cells.batch_layout import InitialState, Lengths, checked_state, flat_states, read_batch
from unrolled.errors import UnknownNameError, UsageError

__all__ = ["Recurrent"]


class Recurrent(nn.Module):
    """Layers and directions of one kind of cell, with the arguments and results of ``torch.nn.LSTM``.

    Layer l reads layer l-1; the outputs of both directions of a layer are concatenated. The backward direction starts
    at the last token of each sequence, and a final state is the state at the end of its sequence: padding is not read.
    Forward hooks of a single cell do not run, because a cell is not called as a module: to normalise or mask its
    weights, use torch.nn.utils.parametrize, not torch.nn.utils.prune.

    Args:
        cell: Class of the cells, or a function of an input size, a hidden size and the options that builds one.
        input_size: Length of each input vector.
        hidden_size: Number of units in each layer and direction.
        num_layers: Number of layers.
        bidirectional: Whether each layer has a second, backward direction.
        dropout: Share of the outputs of every layer but the last that is dropped in training.
        batch_first: Whether padded inputs and outputs have shape (batch, time, …).
        device: Device of the weights; they are drawn on torch's default device and moved.
        dtype: Type of the weights, a floating type.
        **options: Further arguments of the cell.

    Raises:
        UsageError: If a size is not a positive integer, the dropout is outside [0, 1), the type is not a floating type,
            or the cell has no such option.

    Example:
        >>> import torch
        >>> from unrolled.cells.second_order import MLSTM
        >>> rnn = Recurrent(MLSTM, 8, 16, num_layers=2, bidirectional=True, batch_first=True)
        >>> outputs, (h_n, c_n) = rnn(torch.randn(3, 5, 8), lengths=[5, 2, 4])
        >>> outputs.shape, h_n.shape
        (torch.Size([3, 5, 32]), torch.Size([4, 3, 16]))
    """

    def __init__(
        self,
        cell: Callable[..., Cell],
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        batch_first: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        input_size, hidden_size = checked_size("input_size", input_size), checked_size("hidden_size", hidden_size)
        num_layers = checked_size("num_layers", num_layers)
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise UsageError(f"dtype is {dtype!r}; expected a floating type, such as torch.float32")
        _check_options(cell, options)
        dropout = checked_dropout(dropout)
        if dropout and num_layers == 1:
            warnings.warn(
                f"dropout is {dropout} between layers, but there is only one layer: it has no effect", stacklevel=2
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.batch_first = batch_first
        cells: list[Cell] = []
        size = input_size
        for _ in range(num_layers):
            layer = [cell(size, hidden_size, **options) for _ in range(self.directions)]
            size = sum(each.output_size for each in layer)
            cells += layer
        self.output_size = size
        self.cells = nn.ModuleList(cells)
        self.to(device, dtype)

    @property
    def directions(self) -> int:
        """Number of directions, 1 or 2."""
        return 2 if self.bidirectional else 1

    def cell(self, layer: int, direction: int) -> Cell:
        """Return one cell: layer 0 is the lowest, direction 0 is forward and 1 backward."""
        return cast("Cell", self.cells[layer * self.directions + direction])

    def forward(
        self,
        input: Tensor | PackedSequence,  # torch.nn's own name
        hx: InitialState = None,
        *,
        lengths: Lengths = None,
    ) -> tuple[Tensor | PackedSequence, Tensor | tuple[Tensor, Tensor]]:
        """Run the network over a batch of sequences.

        Args:
            input: Shape (time, batch, input), (batch, time, input) if ``batch_first``, (time, input), or packed.
            hx: Initial state: h_0, shape (layers · directions, batch, output), or (h_0, c_0) for a cell whose state
                holds more than its output. By default the cells' own.
            lengths: Lengths of the sequences in a padded batch, in any order.

        Returns:
            The outputs of the top layer in the form of the input, zero in the padding, and the final states in the
            form of ``hx``.

        Raises:
            ShapeError: If the input, the state or the lengths have a wrong shape.
            UsageError: If a length is out of range.
        """
        below, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        one, count = self.cell(0, 0), len(self.cells)
        rest = one.state_size - one.output_size
        initial = flat_states(checked_state(hx, count, below.shape[1], one.output_size, rest), count)
        finals: list[Tensor] = []
        for level in range(self.num_layers):
            outputs = []
            for direction in range(self.directions):
                cell = self.cell(level, direction)
                read = layout.turn(below, direction)
                if layout.ragged:
                    states = cell.unroll(read, initial[len(finals)])[1:]
                    hidden, final = cell.hidden(states), layout.last(states)
                else:
                    hidden, final = cell.outputs(read, initial[len(finals)])
                finals.append(final)
                outputs.append(hidden)
            below = layout.in_token_order(outputs)
            if level < self.num_layers - 1:
                below = functional.dropout(below, self.dropout, self.training)
        last = torch.stack(finals)
        if layout.unbatched:
            last = last[:, 0]
        h_n = last[..., rest:]
        return layout.restore(below), (h_n, last[..., :rest]) if rest else h_n

    def flatten_parameters(self) -> None:
        """Do nothing; torch.nn's networks have this method to lay out their weights for cuDNN."""

    def extra_repr(self) -> str:
        """Return the sizes as torch.nn prints them."""
        words = [f"{self.input_size}, {self.hidden_size}"]
        words += [f"num_layers={self.num_layers}"] if self.num_layers > 1 else []
        words += [f"{name}=True" for name in ("bidirectional", "batch_first") if getattr(self, name)]
        return ", ".join([*words, f"dropout={self.dropout}"] if self.dropout else words)


def _check_options(cell: Callable[..., Cell], options: Iterable[str]) -> None:
    """Raise an error for an option that neither the cell nor the network has."""
    of_cell = list(inspect.signature(cell).parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in of_cell):
        return  # the cell checks them itself
    of_network = list(inspect.signature(Recurrent).parameters.values())
    both = (*of_cell[2:], *of_network[3:])  # behind the sizes, and the cell
    known = [each.name for each in both if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    for option in options:
        if option not in known:
            name = getattr(cell, "name", getattr(cell, "__name__", "the cell"))
            raise UnknownNameError(f"option of {name}", option, known)
