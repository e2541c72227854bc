r"""Opening a network: its layers as cells, its states step by step, the proof that it is the same network.

Any ``torch.nn.RNN``, ``GRU`` or ``LSTM``, and any network of our own cells, is opened as it is: several
layers, bidirectional, projected, batch first or not, packed or padded. Our states are computed by our
cells from the module's own weights and held against the module's own output; a difference above rounding
means that it is not the network we took it for, and it is refused. The module runs as in evaluation, and without
autocast, whatever its caller does.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.cells import CELLS
from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import InitialState, Layout, Lengths, checked_state, flat_states, read_batch
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.layer_run import LayerRun
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.eval_mode import autocasting, evaluating, plain_arithmetic, still
from unrolled.errors import NonFiniteError, ParityError, UsageError

__all__ = ["Network", "Opened", "cell_of", "cells_of", "open_network"]

Network = nn.RNNBase | Recurrent
"""What can be opened: the two have the same interface."""

# How far our states may lie from the network's: rounding of a few hundred steps in the type it computed in.
PARITY = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}


@dataclass(frozen=True)
class Opened:
    """A network as it ran on one batch: for each direction the layers that are decomposed."""

    directions: tuple[tuple[LayerRun, ...], ...]
    """Forward and, for a bidirectional network, backward, the latter in the order it reads."""
    outputs: tuple[Tensor, ...]
    """The network's own hidden output in each direction, in token order, shape (time, batch, hidden)."""
    layout: Layout
    """How the batch came, its lengths among it."""
    parity: float
    """The largest difference between our states and the network's."""
    scope: str

    @property
    def lengths(self) -> Tensor:
        """How many tokens each sequence has, shape (batch,)."""
        return self.layout.lengths


HALVES = (torch.bfloat16, torch.float16)


def _of_type(values: Tensor, what: str, dtype: torch.dtype, mixing: bool) -> Tensor:
    """Bring values to the type of the weights, where torch would: half as single, and any under autocast."""
    if values.dtype == dtype:
        return values
    lossless = values.dtype in HALVES and dtype in (torch.float32, torch.float64)
    if lossless or (mixing and values.is_floating_point()):
        return values.to(dtype)
    raise UsageError(f"{what} are {values.dtype}; expected {dtype}, the type of the weights")


def _finite(values: Tensor, what: str) -> None:
    # One pass: a sum is finite only if all its terms are. If it is not, it may only have overflowed.
    if not torch.isfinite(values.sum()) and not torch.isfinite(values).all():
        raise NonFiniteError(f"{what} hold NaN or infinity; expected finite numbers")


def _own_output(rnn: Network, x: Tensor, layout: Layout, state: InitialState) -> Tensor:
    """Run the module itself."""
    given: Tensor | PackedSequence = x.transpose(0, 1) if rnn.batch_first else x
    if layout.ragged:
        given = pack_padded_sequence(x, layout.lengths.cpu(), enforce_sorted=False)
    # not rnn(...): a user's forward hooks are no business of ours
    output, _ = rnn.forward(given, state)
    if isinstance(output, PackedSequence):
        return pad_packed_sequence(output, total_length=layout.time)[0]
    return output.transpose(0, 1) if rnn.batch_first else output


def cell_of(rnn: nn.RNNBase) -> type[ClosedCell]:
    """Find the cell that a module of torch.nn is made of.

    Args:
        rnn: the module.

    Returns:
        The class.

    Raises:
        UsageError: when it is none of torch.nn's recurrent networks.
    """
    for cell in CELLS.members.values():
        if issubclass(cell, ClosedCell) and cell.torch_type and isinstance(rnn, cell.torch_type):
            return cell
    raise UsageError(f"{type(rnn).__name__} came; expected torch.nn.RNN, GRU or LSTM, or a cell of unrolled.cells")


def cells_of(rnn: Network, dtype: torch.dtype) -> list[tuple[Cell, ...]]:
    """Take a network apart.

    Args:
        rnn: the network; its weights are shared, not copied, where they are in the type already.
        dtype: what to compute in.

    Returns:
        The cells of each layer, lowest first: forward and, for a bidirectional network, backward. They stay in
        evaluation mode, whatever becomes of the network's own.

    Raises:
        UsageError: when it is no recurrent network we know.
    """
    ways = range(2 if rnn.bidirectional else 1)
    if isinstance(rnn, Recurrent):
        return [tuple(_still_cell(rnn.cell(level, way), dtype) for way in ways) for level in range(rnn.num_layers)]
    kind = cell_of(rnn)
    with evaluating(rnn):
        return [tuple(kind.from_torch(rnn, level, way == 1, dtype) for way in ways) for level in range(rnn.num_layers)]


def _still_cell(cell: Cell, dtype: torch.dtype) -> Cell:
    twin = still(cell)
    return twin if all(p.dtype == dtype for p in twin.parameters()) else copy.deepcopy(twin).to(dtype)


def open_network(
    rnn: Network | Cell,
    inputs: Tensor | PackedSequence,
    lengths: Lengths = None,
    state: InitialState = None,
) -> Opened:
    """Run a network on a batch and keep every layer's states.

    Args:
        rnn: a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, a network of our cells, or one of the cells.
        inputs: what one would give to it: padded, unbatched or packed.
        lengths: of the sequences in a padded batch, shape (batch,).
        state: the initial state, as the network takes it; for a cell, flat, shape (batch, state).

    Returns:
        The layers to decompose, with their states, and the parity.

    Raises:
        ShapeError: when inputs, lengths or state do not fit the network.
        NonFiniteError: when a weight or an input is NaN or infinite.
        ParityError: when our states differ from the network's by more than rounding.
        UsageError: when it is no recurrent network we know, or inputs or state are of another type than its weights.
    """
    if not isinstance(rnn, Cell | Recurrent):
        cell_of(rnn)  # refuses what is none
    mixing = autocasting()
    with plain_arithmetic(), evaluating(rnn):
        for name, weight in rnn.named_parameters():
            _finite(weight, f"weights {name}")
        if isinstance(rnn, Cell):
            return _open_cell(rnn, inputs, lengths, state, mixing)
        return _open_layers(rnn, inputs, lengths, state, mixing)


def _open_layers(
    rnn: Network, inputs: Tensor | PackedSequence, lengths: Lengths, state: InitialState, mixing: bool
) -> Opened:
    """Open a network layer by layer, and hold the top layer's states against the network's own."""
    x, layout = read_batch(inputs, rnn.input_size, rnn.batch_first, lengths)
    _finite(x, "inputs")
    own_type = next((p.dtype for p in rnn.parameters()), x.dtype)
    x = _of_type(x, "inputs", own_type, mixing)
    dtype = torch.float32 if own_type in HALVES else own_type
    cells = cells_of(rnn, dtype)
    count, top = len(cells[0]), cells[-1][0]
    state = checked_state(state, len(cells) * count, x.shape[1], top.output_size, top.state_size - top.output_size)
    if isinstance(state, tuple):
        state = (_state_part(state[0], "h_0", own_type, mixing), _state_part(state[1], "c_0", own_type, mixing))
    elif state is not None:
        state = _state_part(state, "h_0", own_type, mixing)
    initial = [s if s is None else s.to(dtype) for s in flat_states(state, len(cells) * count)]
    tops = _own_output(rnn, x, layout, state).to(dtype).chunk(count, dim=-1)
    layers: list[list[LayerRun]] = [[] for _ in range(count)]
    gaps: list[Tensor] = []
    below = x.to(dtype)
    for level, ways in enumerate(cells):
        outputs = []
        for direction, cell in enumerate(ways):
            start = initial[level * count + direction]
            read = layout.reverse(below) if direction else below
            if level < len(cells) - 1:
                trace = cell.run(read, start)
            else:
                # Only the top layer's states come from outside; all our states below lead up to them.
                own = layout.reverse(tops[direction]) if direction else tops[direction]
                trace = cell.follow(read, own, start)
                gaps.append(layout.blank((cell.hidden(trace.image) - own).abs()).max())
            layers[direction].append(trace)
            hidden = cell.hidden(trace.image)
            outputs.append(layout.reverse(hidden) if direction else hidden)
        below = outputs[0] if count == 1 else torch.cat(outputs, dim=-1)
    parity = float(torch.stack(gaps).max())
    # States of squashing cells stay below 1; those of relu and affine cells may grow, and their rounding with them.
    allowed = PARITY[x.dtype] * max(1.0, *(float(layout.blank(top).abs().max()) for top in tops))
    if not parity <= allowed:
        home = "unrolled" if isinstance(rnn, Recurrent) else "torch.nn"
        raise ParityError(
            f"our states differ from the {type(rnn).__name__}'s own by {parity:.3g}; expected at most "
            f"{allowed:g} in {x.dtype}: is its forward the one of {home}?"
        )
    nested = rnn.bidirectional and rnn.num_layers > 1
    return Opened(
        directions=tuple(tuple(stack[-1:] if rnn.bidirectional else stack) for stack in layers),
        outputs=tops,
        layout=layout,
        parity=parity,
        scope=f"inputs of layer {rnn.num_layers}" if nested else "tokens",
    )


def _state_part(part: Tensor, label: str, dtype: torch.dtype, mixing: bool) -> Tensor:
    _finite(part, label)
    return _of_type(part, f"the numbers of {label}", dtype, mixing)


def _open_cell(
    cell: Cell, inputs: Tensor | PackedSequence, lengths: Lengths, state: InitialState, mixing: bool
) -> Opened:
    """Open a single cell of ours: its own unrolling is the network."""
    if not (state is None or isinstance(state, Tensor)):
        kind = type(state).__name__
        raise UsageError(f"the state is a {kind}; expected a flat one for a cell, shape (batch, state)")
    x, layout = read_batch(inputs, cell.input_size, False, lengths)
    _finite(x, "inputs")
    own_type = next((p.dtype for p in cell.parameters()), x.dtype)
    dtype = torch.float32 if own_type in HALVES else own_type
    x = _of_type(x, "inputs", own_type, mixing).to(dtype)
    if state is not None:
        state = _state_part(state, "the state", own_type, mixing).to(dtype)
    cell = _still_cell(cell, dtype)
    trace = cell.run(x, state)
    _finite(trace.image, "states")
    return Opened(
        directions=((trace,),),
        outputs=(cell.hidden(trace.image),),
        layout=layout,
        parity=0.0,
        scope="tokens",
    )
