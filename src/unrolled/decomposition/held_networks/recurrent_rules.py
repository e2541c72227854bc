"""The rules of recurrent networks in a held forward: torch's fused kernels and cells, and networks of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import handle_torch_function

from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import InitialState, Layout, Lengths, checked_state, flat_states, read_batch
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recorded_networks import FUSED
from unrolled.decomposition.opening.layer_runs import NetworkCall
from unrolled.errors import ParityError, UnsupportedOperationError
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries, for_each_tensor, operands
from unrolled.linalg.activations import RELU
from unrolled.model_runs.eval_mode import UNDER_AUTOCAST, autocast_enabled
from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["RECURRENT", "networks_as_operations", "padded_batch", "reads_packed"]

_FUSED_CELLS = ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
RECURRENT = frozenset({*FUSED, *_FUSED_CELLS, "recurrent_network"})
"""Operations that are recurrent networks, or one step of one."""


def _cells(kernel: str, weights: Sequence[Tensor], biases: bool, layers: int, ways: int) -> list[list[Cell]]:
    """Build the cells of a fused kernel around its weights."""
    names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if biases else [])]
    if len(weights) == layers * ways * (len(names) + 1):
        names.append("weight_hr")
    given = iter(weights)
    return [[_cell(kernel, {name: next(given) for name in names}) for _ in range(ways)] for _ in range(layers)]


def _with_rows(call: HeldCall, state: InitialState) -> InitialState:
    """Make rows of the parts of an initial state that carry no value, where another part carries some."""
    if not isinstance(state, tuple) or not any(map(carries, state)):
        return state

    def valued(part: Tensor) -> Tensor:
        return part if carries(part) or not part.any() else call.rows.open("initial", "initial state", part)

    return valued(state[0]), valued(state[1])


def _model(call: HeldCall) -> HeldModel:
    if not isinstance(call.mode, HeldModel):
        raise UnsupportedOperationError(
            f"{call.name} is of a recurrent network, for which HeldForward has no rule; run the model under HeldModel "
            "of unrolled.decomposition.held_networks.held_model"
        )
    if autocast_enabled():
        raise ParityError(UNDER_AUTOCAST)
    return call.mode


def _note_computed_weights(call: HeldCall, weights: Sequence[Tensor]) -> None:
    """Say that weights which are made of value, as a hypernetwork makes them, are held."""
    if any(carries(weight) for weight in weights):
        _model(call).network_notes = (
            "the model computes the weights of a recurrent network from its arguments or biases; these weights are "
            "held, so what they are computed from gets no contribution through them",
        )


def _cell(name: str, weights: Mapping[str, Tensor | None]) -> Cell:
    """Build the cell of a fused kernel, or of one step of it, around its weights."""
    kind = name.removesuffix("_cell")
    if kind in ("lstm", "gru"):
        return (LSTM if kind == "lstm" else GRU).from_weights(weights)
    cell = Elman.from_weights(weights)
    if kind == "rnn_relu":
        cell.activation = RELU
    return cell


@rule(*FUSED)
def fused_network(call: HeldCall) -> tuple[Tensor, ...]:
    """Run torch's fused kernels as layers of cells."""
    return _packed_network(call) if reads_packed(call.args) else _padded_network(call)


def reads_packed(args: Sequence[Any]) -> bool:
    """Tell whether a kernel is given a packed batch: its vectors, and how many sequences each step has."""
    return isinstance(args[1], Tensor) and args[1].dtype == torch.int64


def padded_batch(values: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Pad the vectors of a packed batch, time first, and count the steps of each sequence."""
    found: tuple[Tensor, Tensor] = torch._VF._pad_packed_sequence(values, sizes, False, 0.0, len(sizes))
    return found


def _packed_network(call: HeldCall) -> tuple[Tensor, ...]:
    """Run a kernel that reads a packed batch."""
    mode, (data, sizes, *given) = _model(call), call.args
    inputs, lengths = padded_batch(mode.opened(data), sizes)
    layout = Layout(lengths, len(sizes), int(lengths.min()) < len(sizes))
    cells, initial = _layers(call, given)
    shape = torch.Size((len(data), _features(cells)))
    known = None if mode.recorded is None else mode.recorded.outputs(shape, transposed=False)
    own = None if known is None else padded_batch(known, sizes)[0]
    outputs, states = _run_kernel(call, NetworkCall(cells, inputs, layout, initial, own))
    return torch.cat([outputs[t, :count] for t, count in enumerate(sizes.tolist())]), *states


def _padded_network(call: HeldCall) -> tuple[Tensor, ...]:
    """Run a kernel that reads a batch of sequences of one length."""
    mode, (inputs, *given, batch_first) = _model(call), call.args
    inputs = mode.opened(inputs)
    if batch_first:
        inputs = call.rows.move(inputs, lambda each: each.transpose(0, 1).contiguous())
    layout = Layout(torch.full((inputs.shape[1],), inputs.shape[0], device="cpu"), inputs.shape[0])
    cells, initial = _layers(call, given)
    shape = torch.Size((*inputs.shape[:2], _features(cells)))
    own = None if mode.recorded is None else mode.recorded.outputs(shape, transposed=batch_first)
    outputs, states = _run_kernel(call, NetworkCall(cells, inputs, layout, initial, own))
    return outputs.transpose(0, 1) if batch_first else outputs, *states


def _layers(call: HeldCall, given: Sequence[Any]) -> tuple[list[list[Cell]], list[Tensor | None]]:
    """Build the cells of a kernel from the arguments that follow what it reads, and give their initial states."""
    state, weights, biases, layers, share, training, both = given
    if training and share and layers > 1:
        raise UnsupportedOperationError("dropout between the layers of the network is on; put the model in eval mode")
    _note_computed_weights(call, weights)
    ways = 2 if both else 1
    initial = flat_states(_with_rows(call, tuple(state) if isinstance(state, list) else state), layers * ways)
    return _cells(call.name, weights, biases, layers, ways), initial


def _features(cells: Sequence[Sequence[Cell]]) -> int:
    """Count the numbers that a network returns at a step, of both directions."""
    return cells[0][0].output_size * len(cells[0])


def _run_kernel(call: HeldCall, network: NetworkCall) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the outputs of a kernel, shape (time, batch, features), and its final states: h, or h and c."""
    outputs, finals = _model(call).run_network(network)
    last, size = torch.stack(finals), network.cells[0][0].output_size
    return outputs, (last[..., -size:], last[..., :-size]) if call.name == "lstm" else (last,)


@rule(*_FUSED_CELLS)
def fused_cell(call: HeldCall) -> Any:
    """Run one step of torch's cells."""
    mode, (inputs, state, *weights) = _model(call), call.args
    _note_computed_weights(call, weights)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cell = _cell(call.name, dict(zip(names, [*weights, None, None], strict=False)))
    layout = Layout(torch.ones(len(inputs), dtype=torch.int64, device="cpu"), 1)
    given = tuple(each[None] for each in state) if isinstance(state, tuple | list) else state[None]
    initial = flat_states(_with_rows(call, given), 1)
    _, (final,) = mode.run_network(NetworkCall([[cell]], mode.opened(inputs)[None], layout, initial))
    size = cell.output_size
    return (final[..., -size:], final[..., :-size]) if call.name == "lstm_cell" else final


@contextmanager
def networks_as_operations(model: nn.Module) -> Iterator[None]:
    """Make each network of ours in a model one operation of a mode; those of torch.nn are one already."""
    # a user may have replaced the forward of one: its operations are met one by one
    ours = [
        part for part in all_modules(model).values() if isinstance(part, Recurrent) and "forward" not in part.__dict__
    ]
    with replaced_attributes((part, "forward", _stand_in(part)) for part in ours):
        yield


def _stand_in(network: Recurrent) -> Any:
    """A forward of one of our own networks that a mode meets as one operation."""

    def forward(input: Tensor | PackedSequence, hx: InitialState = None, *, lengths: Lengths = None) -> Any:
        return handle_torch_function(recurrent_network, operands((input,)), network, input, hx, lengths)

    return forward


def recurrent_network(
    network: Recurrent, inputs: Tensor | PackedSequence, initial: InitialState, lengths: Lengths
) -> Any:
    """Run one of our own networks as it is."""
    return type(network).forward(network, inputs, initial, lengths=lengths)


@rule("recurrent_network")
def held_network(call: HeldCall) -> Any:
    """Run one of our own networks as layers of cells."""
    mode, (network, inputs, state, lengths) = _model(call), call.args
    inputs = for_each_tensor(inputs, mode.opened)
    below, layout = read_batch(inputs, network.input_size, network.batch_first, lengths)
    cells = [[network.cell(level, way) for way in range(network.directions)] for level in range(network.num_layers)]
    one, count = cells[0][0], len(network.cells)
    rest = one.state_size - one.output_size
    given = checked_state(state, count, below.shape[1], one.output_size, rest)
    initial = flat_states(_with_rows(call, given), count)
    outputs, finals = mode.run_network(NetworkCall(cells, below, layout, initial))
    last = torch.stack(finals)[:, 0] if layout.unbatched else torch.stack(finals)
    h_n = last[..., rest:]
    return layout.restore(outputs), (h_n, last[..., :rest]) if rest else h_n
