"""A stack of cells behind torch.nn's interface: it stands wherever an ``nn.LSTM`` stood."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import InitialState, Lengths, checked_state, flat_states, read_batch
from unrolled.errors import UnknownNameError, UsageError
from unrolled.sizes import checked_size

__all__ = ["Recurrent"]


class Recurrent(nn.Module):
    """Layers and directions of one kind of cell, called and answering as ``torch.nn.LSTM`` does.

    Layer l reads layer l-1; both directions of a bidirectional layer are laid side by side. The backward
    direction begins at each sequence's own last token, and a final state is the one at a sequence's end:
    padding is never read.

    Args:
        cell: the class of the cells, or what makes one from an input size, a hidden size and the options.
        input_size: e.
        hidden_size: d, for each layer and direction.
        num_layers: how many layers.
        bidirectional: whether each layer reads both ways.
        dropout: the share of every layer's outputs but the last's that is dropped in training.
        batch_first: whether padded inputs and outputs are (batch, time, …).
        device: where the weights are to be; they are drawn on torch's default device and moved.
        dtype: what they are to be in, a floating type.
        **options: further arguments of the cell.

    Raises:
        UsageError: when a size is not a positive integer, the dropout is outside [0, 1), the type is not a
            floating one, or the cell has no such option.

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
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout is {dropout}; expected 0 or more, and less than 1")
        if dropout and num_layers == 1:
            warnings.warn(f"dropout is {dropout} between layers, and there is but one layer", stacklevel=2)
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
        """How many ways it reads: 1 or 2."""
        return 2 if self.bidirectional else 1

    def cell(self, layer: int, direction: int) -> Cell:
        """Give one cell.

        Args:
            layer: from 0, the lowest.
            direction: 0 forward, 1 backward.

        Returns:
            The cell.
        """
        return cast("Cell", self.cells[layer * self.directions + direction])

    def forward(
        self,
        input: Tensor | PackedSequence,  # torch.nn's own name
        hx: InitialState = None,
        *,
        lengths: Lengths = None,
    ) -> tuple[Tensor | PackedSequence, Tensor | tuple[Tensor, Tensor]]:
        """Run over a batch of sequences.

        Args:
            input: (time, batch, input), (batch, time, input) if ``batch_first``, (time, input), or packed.
            hx: the initial state: h_0, shape (layers · directions, batch, output), or (h_0, c_0) for a
                cell whose state holds more than its output; the cells' own when left out.
            lengths: of the sequences in a padded batch, in any order.

        Returns:
            The outputs of the top layer in the form of the input, zero beyond a sequence's end; and the final
            states in the form of ``hx``.

        Raises:
            ShapeError: when the input, the state or the lengths have another shape.
            UsageError: when a length is out of range.
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
                read = layout.reverse(below) if direction else below
                if layout.ragged:
                    states = cell.unroll(read, initial[len(finals)])[1:]
                    hidden, final = cell.hidden(states), layout.last(states)
                else:
                    hidden, final = cell.outputs(read, initial[len(finals)])
                finals.append(final)
                outputs.append(layout.reverse(hidden) if direction else hidden)
            below = torch.cat(outputs, dim=-1) if self.bidirectional else outputs[0]
            if level < self.num_layers - 1:
                below = functional.dropout(below, self.dropout, self.training)
        last = torch.stack(finals)
        if layout.unbatched:
            last = last[:, 0]
        h_n = last[..., rest:]
        return layout.restore(below), (h_n, last[..., :rest]) if rest else h_n

    def flatten_parameters(self) -> None:
        """Do nothing: torch.nn's networks lay their weights out for cuDNN here, and their users call it."""

    def extra_repr(self) -> str:
        """Say the sizes as torch.nn does."""
        words = [f"{self.input_size}, {self.hidden_size}"]
        words += [f"num_layers={self.num_layers}"] if self.num_layers > 1 else []
        words += [f"{name}=True" for name in ("bidirectional", "batch_first") if getattr(self, name)]
        return ", ".join([*words, f"dropout={self.dropout}"] if self.dropout else words)


def _check_options(cell: Callable[..., Cell], options: Iterable[str]) -> None:
    """Refuse an option that neither the cell nor the network has."""
    of_cell = list(inspect.signature(cell).parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in of_cell):
        return  # it judges them itself
    of_network = list(inspect.signature(Recurrent).parameters.values())
    both = (*of_cell[2:], *of_network[3:])  # behind the sizes, and the cell
    known = [each.name for each in both if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    for option in options:
        if option not in known:
            name = getattr(cell, "name", getattr(cell, "__name__", "the cell"))
            raise UnknownNameError(f"option of {name}", option, known)
