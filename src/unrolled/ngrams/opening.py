r"""Opening a network: its layers as cells, its states step by step, and the proof that they are the same network.

Any ``torch.nn.RNN``, ``GRU`` or ``LSTM`` is opened as it is: several layers, bidirectional, projected, batch first or
not, packed or padded. Our states are computed by our cells from the module's own weights and held against the module's
own output; a difference above rounding means that it is not the network we took it for, and it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.cells import CELLS
from unrolled.errors import NonFiniteError, ParityError, ShapeError, UsageError
from unrolled.recurrence.cell import Cell
from unrolled.recurrence.closed import ClosedCell
from unrolled.recurrence.trace import Trace

__all__ = ["Opened", "State", "open_network", "reversal"]

State = Tensor | tuple[Tensor, Tensor] | None
"""An initial state as torch.nn takes it: h_0, or (h_0, c_0)."""

# How far our states may lie from the network's: rounding of a few hundred steps in the type it computed in.
PARITY = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}


@dataclass(frozen=True)
class Opened:
    """A network as it ran on one batch: for each direction the layers that are decomposed."""

    directions: tuple[tuple[Trace, ...], ...]
    """Forward and, for a bidirectional network, backward, the latter in the order it reads."""
    outputs: tuple[Tensor, ...]
    """The network's own hidden output in each direction, in token order, shape (time, batch, hidden)."""
    lengths: Tensor
    """Shape (batch,)."""
    parity: float
    """The largest difference between our states and the network's."""
    scope: str


def reversal(lengths: Tensor, time: int) -> Tensor:
    """Give the index that reverses each sequence within its length; it is its own inverse.

    Args:
        lengths: shape (batch,).
        time: the padded length.

    Returns:
        Positions, shape (time, batch).
    """
    steps = torch.arange(time, device=lengths.device)[:, None]
    backward = lengths[None, :] - 1 - steps
    return torch.where(backward >= 0, backward, steps)


def _reverse(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(0, index[..., None].expand(values.shape))


def _finite(values: Tensor, what: str) -> None:
    # One pass: a sum is finite only if all its terms are. If it is not, it may only have overflowed.
    if not torch.isfinite(values.sum()) and not torch.isfinite(values).all():
        raise NonFiniteError(f"{what} hold NaN or infinity; expected finite numbers")


def _time_major(rnn: nn.RNNBase, inputs: Tensor | PackedSequence, lengths: object) -> tuple[Tensor, Tensor]:
    """Bring any input torch.nn takes to (time, batch, input) and its lengths."""
    if isinstance(inputs, PackedSequence):
        if lengths is not None:
            raise UsageError("lengths came with a packed sequence, which has its own; expected one or the other")
        padded, own = pad_packed_sequence(inputs)
        return padded, own.to(padded.device)
    if inputs.dim() == 2:
        inputs = inputs.unsqueeze(1)
    elif inputs.dim() == 3:
        inputs = inputs.transpose(0, 1) if rnn.batch_first else inputs
    if inputs.dim() != 3 or inputs.shape[-1] != rnn.input_size:
        raise ShapeError(
            f"inputs have shape {tuple(inputs.shape)}; expected "
            f"{'(batch, time' if rnn.batch_first else '(time, batch'}, {rnn.input_size})"
        )
    time, batch = inputs.shape[:2]
    if time == 0 or batch == 0:
        raise ShapeError(f"inputs have {batch} sequences of {time} tokens; expected at least one token")
    if lengths is None:
        return inputs, torch.full((batch,), time, device=inputs.device)
    given = torch.as_tensor(lengths, device=inputs.device)
    if given.shape != (batch,) or given.dtype not in (torch.int64, torch.int32):
        raise ShapeError(f"lengths have shape {tuple(given.shape)}, {given.dtype}; expected ({batch},) whole numbers")
    if int(given.min()) < 1 or int(given.max()) > time:
        raise UsageError(f"lengths run from {int(given.min())} to {int(given.max())}; expected 1 to {time}")
    return inputs, given.to(torch.int64)


def _checked_state(rnn: nn.RNNBase, state: State, batch: int) -> State:
    """Hold an initial state against the network, and give it a batch axis where it has none."""
    if state is None:
        return None
    carried = isinstance(rnn, nn.LSTM)
    if isinstance(state, tuple) != carried:
        raise ShapeError(f"the state is a {type(state).__name__}; expected {'(h_0, c_0)' if carried else 'h_0'}")
    count = rnn.num_layers * (2 if rnn.bidirectional else 1)
    sizes = (rnn.proj_size or rnn.hidden_size, rnn.hidden_size)
    parts = []
    for label, part, size in zip(("h_0", "c_0"), state if isinstance(state, tuple) else (state,), sizes, strict=False):
        part = part.unsqueeze(1) if part.dim() == 2 else part
        if part.shape != (count, batch, size):
            raise ShapeError(f"{label} has shape {tuple(part.shape)}; expected {(count, batch, size)}")
        _finite(part, label)
        parts.append(part)
    return (parts[0], parts[1]) if carried else parts[0]


def _flat_states(rnn: nn.RNNBase, state: State, dtype: torch.dtype) -> list[Tensor | None]:
    """Lay out the initial state: one flat state for each layer and direction, [c; h] for an LSTM."""
    if state is None:
        return [None] * (rnn.num_layers * (2 if rnn.bidirectional else 1))
    parts = state[::-1] if isinstance(state, tuple) else (state,)
    return list(torch.cat(parts, dim=-1).to(dtype))


def _own_output(rnn: nn.RNNBase, inputs: Tensor, lengths: Tensor, state: State) -> Tensor:
    """Run the module itself, as in evaluation, and leave it as it was."""
    packed: Tensor | PackedSequence = inputs.transpose(0, 1) if rnn.batch_first else inputs
    if int(lengths.min()) < inputs.shape[0]:
        packed = pack_padded_sequence(inputs, lengths.cpu(), enforce_sorted=False)
    mode = rnn.training
    rnn.training = False
    try:
        # not rnn(...): a user's forward hooks are no business of ours
        output, _ = rnn.forward(packed, state)
    finally:
        rnn.training = mode
    if isinstance(output, PackedSequence):
        return pad_packed_sequence(output, total_length=inputs.shape[0])[0]
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
        if issubclass(cell, ClosedCell) and isinstance(rnn, cell.torch_type):
            return cell
    raise UsageError(f"{type(rnn).__name__} came; expected torch.nn.RNN, GRU or LSTM, or a cell of unrolled.cells")


def open_network(
    rnn: nn.RNNBase | Cell,
    inputs: Tensor | PackedSequence,
    lengths: Tensor | Sequence[int] | None = None,
    state: State = None,
    output: Tensor | None = None,
) -> Opened:
    """Run a network on a batch and keep every layer's states.

    Args:
        rnn: a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or one of our cells.
        inputs: what one would give to it: padded, unbatched or packed.
        lengths: of the sequences in a padded batch, shape (batch,).
        state: the initial state, as torch.nn takes it; for a cell, flat, shape (batch, state).
        output: the network's own output in (time, batch, …) where it is known already.

    Returns:
        The layers to decompose, with their states, and the parity.

    Raises:
        ShapeError: when inputs, lengths or state do not fit the network.
        NonFiniteError: when a weight or an input is NaN or infinite.
        ParityError: when our states differ from the network's by more than rounding.
        UsageError: when it is no recurrent network we know.
    """
    if isinstance(rnn, Cell):
        return _open_cell(rnn, inputs, lengths, state)
    kind = cell_of(rnn)
    for name, weight in rnn.named_parameters():
        _finite(weight, f"weights {name}")
    x, lengths = _time_major(rnn, inputs, lengths)
    time, batch = x.shape[:2]
    inside = torch.arange(time, device=x.device)[:, None] < lengths
    ragged = int(lengths.min()) < time
    if ragged:
        # Padding is never read, whatever it holds; NaN there would spread through products with zero.
        x = torch.where(inside[..., None], x, torch.zeros_like(x))
    _finite(x, "inputs")
    state = _checked_state(rnn, state, batch)
    own = _own_output(rnn, x, lengths, state) if output is None else output
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    initial = _flat_states(rnn, state, dtype)
    count = 2 if rnn.bidirectional else 1
    backward = reversal(lengths, time) if rnn.bidirectional else None
    below = x.to(dtype)
    tops = own.to(dtype).chunk(count, dim=-1)
    layers: list[list[Trace]] = [[] for _ in range(count)]
    gaps: list[Tensor] = []
    for level in range(rnn.num_layers):
        outputs = []
        for direction in range(count):
            cell = kind.from_torch(rnn, level, direction == 1, dtype)
            start = initial[level * count + direction]
            turned = None if direction == 0 else backward
            read = below if turned is None else _reverse(below, turned)
            if level < rnn.num_layers - 1:
                trace = cell.run(read, start)
            else:
                # Only the top layer's states come from outside; all our states below lead up to them.
                top = tops[direction] if turned is None else _reverse(tops[direction], turned)
                trace = cell.follow(read, top, start)
                apart = (cell.hidden(trace.image) - top).abs().amax(dim=-1)
                gaps.append(torch.where(inside, apart, 0.0).max())
            layers[direction].append(trace)
            hidden = cell.hidden(trace.image)
            outputs.append(hidden if turned is None else _reverse(hidden, turned))
        below = outputs[0] if count == 1 else torch.cat(outputs, dim=-1)
    parity = float(torch.stack(gaps).max())
    allowed = PARITY[x.dtype]
    if not parity <= allowed:
        raise ParityError(
            f"our states differ from the {type(rnn).__name__}'s own by {parity:.3g}; expected at most {allowed:g} "
            f"in {x.dtype}: is its forward the one of torch.nn?"
        )
    nested = rnn.bidirectional and rnn.num_layers > 1
    return Opened(
        directions=tuple(tuple(stack[-1:] if rnn.bidirectional else stack) for stack in layers),
        outputs=tops,
        lengths=lengths,
        parity=parity,
        scope=f"inputs of layer {rnn.num_layers}" if nested else "tokens",
    )


def _open_cell(cell: Cell, inputs: Tensor | PackedSequence, lengths: object, state: State) -> Opened:
    """Open a single cell of ours: its own unrolling is the network."""
    if isinstance(inputs, PackedSequence) or isinstance(state, tuple):
        raise UsageError("a cell takes padded inputs (time, batch, input) and a flat state (batch, state)")
    trace = cell.run(inputs, state)
    time, batch = inputs.shape[:2]
    known = torch.full((batch,), time) if lengths is None else torch.as_tensor(lengths)
    _finite(trace.states, "states")
    return Opened(
        directions=((trace,),),
        outputs=(cell.hidden(trace.states[1:]),),
        lengths=known.to(inputs.device),
        parity=0.0,
        scope="tokens",
    )
