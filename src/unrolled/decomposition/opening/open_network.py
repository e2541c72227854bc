r"""Open a network: its states step by step, and the check that its cells are the same network.

A ``torch.nn.RNN``, ``GRU`` or ``LSTM`` and any network of our own cells is opened as it is: several layers,
bidirectional, projected, batch first or not, packed or padded. Our cells recompute the states from the module's
weights. If they differ from the module's own output by more than rounding, the module is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import InitialState, Layout, Lengths, checked_state, flat_states, read_batch
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.opening.layer_runs import NetworkCall, run_once, states_parity
from unrolled.decomposition.opening.network_cells import Network, build_cells, cell_type, eval_cell
from unrolled.decomposition.opening.parity import PARITY
from unrolled.errors import NonFiniteError, ParityError, UsageError
from unrolled.linalg.available_memory import refuse_too_long
from unrolled.linalg.finite_sum import has_finite_sum
from unrolled.model_runs.eval_mode import autocast_enabled, eval_mode, without_grad_and_autocast
from unrolled.model_runs.unchanged_weights import UnchangedWeights

__all__ = ["PRECISION", "OpenedNetwork", "network_outputs", "open_network"]

PRECISION = {**PARITY, torch.bfloat16: 0.1, torch.float16: 0.02}
"""Of a network in half precision, whose states are recomputed in float32: the rounding of its own."""
_HALVES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class OpenedNetwork:
    """The run of a network on one batch."""

    directions: tuple[tuple[LayerRun, ...], ...]
    """The layers, lowest first: forward and, if bidirectional, backward (in the order in which it reads)."""
    outputs: tuple[Tensor, ...]
    """The network's own hidden output in each direction, in token order, shape (time, batch, hidden)."""
    layout: Layout
    """The batch's form, with its lengths."""
    parity: float
    """The largest difference between the recomputed states and the network's own."""
    weights: UnchangedWeights
    """The weights, which the cells share."""

    @property
    def coupled(self) -> bool:
        """Whether layers read both directions of the layers below: a deep bidirectional network."""
        return len(self.directions) > 1 and len(self.directions[0]) > 1

    @property
    def lengths(self) -> Tensor:
        """Number of tokens of each sequence, shape (batch,)."""
        return self.layout.lengths


def _types(module: Network | Cell, x: Tensor) -> tuple[torch.dtype, torch.dtype]:
    """Return the type of a module's weights, and the one in which its states are recomputed."""
    own_type = next((p.dtype for p in module.parameters()), x.dtype)
    return own_type, torch.float32 if own_type in _HALVES else own_type


def _converted(values: Tensor, what: str, dtype: torch.dtype, autocast: bool) -> Tensor:
    """Convert values to the type of the weights where torch would: half to single, and any type under autocast."""
    if values.dtype == dtype:
        return values
    lossless = values.dtype in _HALVES and dtype in (torch.float32, torch.float64)
    if lossless or (autocast and values.is_floating_point()):
        return values.to(dtype)
    raise UsageError(f"{what} are {values.dtype}; expected {dtype}, the type of the weights")


def _check_finite(values: Tensor, what: str) -> None:
    if not has_finite_sum(values) and not torch.isfinite(values).all():
        raise NonFiniteError(f"{what} hold NaN or infinity; expected finite numbers")


def _check_inputs(x: Tensor) -> None:
    """Refuse inputs of shape (time, batch, input) that are not finite."""
    try:
        _check_finite(x, "inputs")
    except NonFiniteError as error:
        sequence, step, entry = torch.isfinite(x).logical_not().transpose(0, 1).nonzero()[0].tolist()
        first = f"the first is number {entry} of step {step} of sequence {sequence}, counted from 0"
        raise NonFiniteError(f"{error}; {first}") from None


def _own_output(
    rnn: Network, x: Tensor, layout: Layout, state: InitialState, known: Tensor | PackedSequence | None
) -> Tensor:
    """Return the module's output, shape (time, batch, features): as it is known, or by a run."""
    if isinstance(known, PackedSequence) and layout.packed is not None:
        return pad_packed_sequence(known, total_length=layout.time)[0]
    if isinstance(known, Tensor) and not layout.ragged:
        batched = known.unsqueeze(1) if layout.unbatched else known
        return batched.transpose(0, 1) if rnn.batch_first and not layout.unbatched else batched
    given: Tensor | PackedSequence = x.transpose(0, 1) if rnn.batch_first else x
    if layout.ragged:
        given = pack_padded_sequence(x, layout.lengths.cpu(), enforce_sorted=False)
    # not rnn(...), which would run the user's forward hooks
    output, _ = rnn.forward(given, state)
    if isinstance(output, PackedSequence):
        return pad_packed_sequence(output, total_length=layout.time)[0]
    return output.transpose(0, 1) if rnn.batch_first else output


def network_outputs(
    rnn: Network | Cell, inputs: Tensor | PackedSequence, lengths: Lengths, state: InitialState
) -> Tensor:
    """Run a network or a cell once in evaluation mode; return its outputs, shape (time, batch, features)."""
    with without_grad_and_autocast(), eval_mode(rnn):
        if isinstance(rnn, Cell):
            x, _ = read_batch(inputs, rnn.input_size, False, lengths)
            return rnn.hidden(rnn.run(x, cast("Tensor | None", state)).image)
        x, layout = read_batch(inputs, rnn.input_size, rnn.batch_first, lengths)
        return _own_output(rnn, x, layout, state, None)


def open_network(
    rnn: Network | Cell,
    inputs: Tensor | PackedSequence,
    lengths: Lengths,
    state: InitialState,
    known: Tensor | PackedSequence | None = None,
) -> OpenedNetwork:
    """Run a network on a batch and record every layer's states; the first arguments are those of :func:`decompose`.

    ``known`` is what the network gave on these inputs in evaluation mode, without autocast; None runs it.
    """
    if not isinstance(rnn, Cell | Recurrent):
        cell_type(rnn)  # refuses any other module
    autocast, weights = autocast_enabled(), UnchangedWeights(rnn)
    with without_grad_and_autocast(), eval_mode(rnn):
        for name, weight in rnn.named_parameters():
            _check_finite(weight, f"weights {name}")
        if isinstance(rnn, Cell):
            return _open_cell(rnn, inputs, lengths, state, autocast, weights)
        return _open_layers(rnn, inputs, lengths, state, autocast, known, weights)


def _open_layers(
    rnn: Network,
    inputs: Tensor | PackedSequence,
    lengths: Lengths,
    state: InitialState,
    autocast: bool,
    known: Tensor | PackedSequence | None,
    weights: UnchangedWeights,
) -> OpenedNetwork:
    """Run a network layer by layer, and compare the top layer's states with the network's own."""
    x, layout = read_batch(inputs, rnn.input_size, rnn.batch_first, lengths)
    _check_inputs(x)
    own_type, dtype = _types(rnn, x)
    x = _converted(x, "inputs", own_type, autocast)
    cells = build_cells(rnn, dtype)
    refuse_too_long(len(x), x.shape[1], sum(cell.state_size for ways in cells for cell in ways), dtype, x.device)
    count, top = len(cells[0]), cells[-1][0]
    state = checked_state(state, len(cells) * count, x.shape[1], top.output_size, top.state_size - top.output_size)
    state = _converted_state(state, own_type, autocast)
    initial = [s if s is None else s.to(dtype) for s in flat_states(state, len(cells) * count)]
    weights.run_starts()
    own = _own_output(rnn, x, layout, state, known).to(dtype)
    weights.run_ends()
    call = NetworkCall(cells, x.to(dtype), layout, initial, own)
    runs = run_once(call)
    parity = states_parity(runs, call, PRECISION[x.dtype], own_type=own_type)
    if not parity.holds:
        home = "unrolled" if isinstance(rnn, Recurrent) else "torch.nn"
        raise ParityError(
            f"our states differ from the {type(rnn).__name__}'s own by {parity.gap:.3g}; expected at most "
            f"{parity.allowed:g} in {x.dtype}: is its forward the one of {home}?"
        )
    return OpenedNetwork(
        directions=tuple(zip(*runs, strict=True)),
        outputs=own.chunk(count, dim=-1),
        layout=layout,
        parity=parity.gap,
        weights=weights,
    )


def _converted_state(state: InitialState, dtype: torch.dtype, autocast: bool) -> InitialState:
    """Convert an initial state to the type of the weights, and refuse one that is not finite."""
    if isinstance(state, tuple):
        return _state_part(state[0], "h_0", dtype, autocast), _state_part(state[1], "c_0", dtype, autocast)
    return None if state is None else _state_part(state, "h_0", dtype, autocast)


def _state_part(part: Tensor, label: str, dtype: torch.dtype, autocast: bool) -> Tensor:
    _check_finite(part, label)
    return _converted(part, f"the numbers of {label}", dtype, autocast)


def _open_cell(
    cell: Cell,
    inputs: Tensor | PackedSequence,
    lengths: Lengths,
    state: InitialState,
    autocast: bool,
    weights: UnchangedWeights,
) -> OpenedNetwork:
    """Run a single cell of ours; no other implementation exists to compare it with."""
    if not (state is None or isinstance(state, Tensor)):
        kind = type(state).__name__
        raise UsageError(f"the state is a {kind}; expected a flat one for a cell, shape (batch, state)")
    x, layout = read_batch(inputs, cell.input_size, False, lengths)
    _check_inputs(x)
    own_type, dtype = _types(cell, x)
    x = _converted(x, "inputs", own_type, autocast).to(dtype)
    if state is not None:
        state = _state_part(state, "the state", own_type, autocast).to(dtype)
    cell = eval_cell(cell, dtype)
    run = cell.run(x, state)
    _check_finite(run.image, "states")
    return OpenedNetwork(
        directions=((run,),),
        outputs=(cell.hidden(run.image),),
        layout=layout,
        parity=0.0,
        weights=weights,
    )
