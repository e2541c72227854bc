r"""Recurrent networks in a held forward: their states by an expansion, their inputs by shares.

One layer's states follow s_t = G_t + A_t s_{t-1} + C_t Δu_t. Its input is u⁰ + Δu, where u⁰ is what the layers below
make of each token alone. G_t = f(u⁰_t, 0) goes back to u⁰ and the biases by shares; A_t and C_t are those of the
expansion. The state less G_t is the Δu of the layer above. Backward, one sweep a layer and direction carries a
readout from the states to G, Δu and the initial state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import handle_torch_function

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import InitialState, Layout, Lengths, checked_state, flat_states, read_batch
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UnsupportedOperationError
from unrolled.expansions.base import Linearisation
from unrolled.expansions.shares import Shares
from unrolled.held_forward.mode import Held, HeldForward, carries, operands, rule
from unrolled.held_forward.rows import Rows
from unrolled.linalg.activations import RELU
from unrolled.linalg.operators import Operator

__all__ = ["HeldModel", "LayerSweep", "networks_as_operations"]


class LayerSweep(torch.autograd.Function):
    """The states of one layer, linear in G, Δu and s_0; backward is one adjoint sweep."""

    @staticmethod
    def forward(
        ctx: Any,
        alone: Tensor,  # noqa: ARG004  # backward differentiates by it
        moved: Tensor | None,
        initial: Tensor,  # noqa: ARG004  # as above
        states: Tensor,
        operator: Operator,
    ) -> Tensor:
        """Return the states that the network went through, shape (time, batch, state)."""
        ctx.operator, ctx.moves = operator, moved is not None
        return states.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Sweep from the last step to the first."""
        covectors = gradients[0].clone()
        for t in range(len(covectors) - 1, 0, -1):
            covectors[t - 1] += ctx.operator.at(t).apply_transpose(covectors[t][None], with_inputs=False)[0][0]
        first = ctx.operator.at(0).apply_transpose(covectors[0][None], with_inputs=False)[0][0]
        moved = None
        if ctx.moves:
            by_input = ctx.operator.apply_transpose(covectors[None], with_inputs=True)[1]
            moved = None if by_input is None else by_input[0]
        return covectors, moved, first, None, None


class HeldModel(HeldForward):
    """A held forward that knows recurrent networks.

    Args:
        rows: Collects the sources of value.
        expansion: How the networks' states are rewritten.
        share: p, see :class:`HeldForward`.
        tolerance: Of an expansion that integrates.
    """

    def __init__(self, rows: Rows, expansion: Linearisation, share: float = 0.75, tolerance: float = 1e-6) -> None:
        super().__init__(rows, share)
        self.expansion, self.tolerance = expansion, tolerance

    def run_layers(
        self, cells: Sequence[Sequence[Cell]], inputs: Tensor, layout: Layout, initial: Sequence[Tensor | None]
    ) -> tuple[Tensor, list[Tensor]]:
        """Run the layers of a network.

        Args:
            cells: Of each layer, lowest first: forward and, if bidirectional, backward.
            inputs: Shape (time, batch, input).
            layout: The lengths of the sequences.
            initial: The flat initial state of each layer and direction; None for the cell's own.

        Returns:
            The hidden outputs, shape (time, batch, directions · output), and every layer's and direction's final state.
        """
        alone, output = inputs, inputs
        moved: Tensor | None = None
        finals = []
        for level, ways in enumerate(cells):
            outputs, bases = [], []
            for way, cell in enumerate(ways):
                start = initial[level * len(ways) + way]
                reads = layout.reverse if way else _as_it_is
                states, base = self._layer(cell, reads(alone), None if moved is None else reads(moved), start)
                finals.append(states[layout.lengths - 1, torch.arange(states.shape[1])])
                hidden, base = cell.hidden(states), cell.hidden(base)
                outputs.append(reads(hidden))
                bases.append(reads(base))
            alone, output = torch.cat(bases, dim=-1), torch.cat(outputs, dim=-1)
            moved = output - alone
        return output, finals

    def _layer(self, cell: Cell, alone: Tensor, moved: Tensor | None, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run one layer in one direction: its states, and what each token alone makes of them."""
        rows = self.rows
        with torch.no_grad():
            total = alone.detach() if moved is None else alone.detach() + moved.detach()
            first = cell.initial_state(total.shape[1]) if start is None else start.detach()
            first = first.to(total)
            if isinstance(cell, ClosedCell):  # torch's own kernel is the fastest, where there is one
                run: LayerRun = cell.run_from_outputs(total, cell.outputs(total, first)[0], first)
            else:
                run = cell.run(total, first)
            ray = run.ray(run.inputs if moved is None else alone.detach())
            base, operator = self.expansion.expand(ray, self.tolerance)
        if start is None or not carries(start):
            start = rows.open("initial", "initial state", first) if bool(first.count_nonzero()) else first
        if not carries(alone):
            held = rows.constant(base)
        else:
            held = self._alone(cell, alone, moved, run.states[:-1], base)
        return LayerSweep.apply(held, moved, start, run.image, operator), held

    def _alone(self, cell: Cell, alone: Tensor, moved: Tensor | None, before: Tensor, base: Tensor) -> Tensor:
        """Make g, what each step adds to the state, linear in the step's own input and the biases.

        By ``secant`` and ``path`` g is f(u⁰, 0), and by ``shares`` the part of f(u⁰ + Δu, s) that is not that of Δu
        and s; both follow shares. What other expansions add to f(u⁰, 0) depends on the state and is credited to u⁰.
        """
        if isinstance(self.expansion, Shares):
            state = before.detach().requires_grad_()  # a part of its own, which is no row
            whole = alone if moved is None else alone + moved.detach().requires_grad_()
            of_others, self.share = self.share, self.expansion.share
            found = self._step(cell, whole, state)
            self.share = of_others
            return found - (found.detach() - base)
        found = self._step(cell, alone, None)
        rest = base - found.detach()
        if float(rest.abs().max()) <= 100 * torch.finfo(rest.dtype).eps * max(1.0, float(base.abs().max())):
            return found
        size = alone.detach().square().sum(dim=-1, keepdim=True)
        share = (alone * alone.detach()).sum(dim=-1, keepdim=True) / torch.where(size > 0, size, torch.ones_like(size))
        return found + rest * share + self.rows.constant(torch.where(size > 0, torch.zeros_like(rest), rest))

    def _step(self, cell: Cell, inputs: Tensor, state: Tensor | None) -> Tensor:
        """Compute f, linear in the inputs, the state if there is one, and the biases."""
        with self:
            if not isinstance(cell, ClosedCell):
                empty = inputs.new_zeros(*inputs.shape[:-1], cell.state_size)
                return cell.step(inputs, empty if state is None else state)
            from_input = nn.functional.linear(inputs, cell.weight_ih, cell.bias_ih)
            lead = inputs.shape[:-1]
            if state is None:
                from_hidden = inputs.new_zeros(*lead, len(cell.recurrent_weight))
                carried = inputs.new_zeros(*lead, cell.hidden_size)
            else:
                from_hidden = nn.functional.linear(cell.hidden(state), cell.recurrent_weight)
                carried = state[..., : cell.hidden_size]
            if cell.recurrent_bias is not None:
                kind, name = self.rows.origin(cell.recurrent_bias)
                from_hidden = from_hidden + self.rows.open(kind, name, cell.recurrent_bias.expand(from_hidden.shape))
            return cell.join_parts(cell.elementwise(from_input, from_hidden, carried))


def _as_it_is(values: Tensor) -> Tensor:
    return values


def _cells(kind: type[ClosedCell], weights: Sequence[Tensor], biases: bool, layers: int, ways: int) -> list[list[Cell]]:
    """Build the cells of a fused kernel around its weights."""
    names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if biases else [])]
    if len(weights) == layers * ways * (len(names) + 1):
        names.append("weight_hr")
    given = iter(weights)
    return [[kind.from_weights({name: next(given) for name in names}) for _ in range(ways)] for _ in range(layers)]


def _model(call: Held) -> HeldModel:
    if not isinstance(call.mode, HeldModel):
        raise UnsupportedOperationError(f"{call.operation.name}: only unrolled.account holds recurrent networks")
    return call.mode


def _kind(name: str) -> type[ClosedCell]:
    return {"lstm": LSTM, "gru": GRU}.get(name.removesuffix("_cell"), Elman)


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def fused_network(call: Held) -> tuple[Tensor, ...]:
    """Run torch's fused kernels as layers of cells."""
    packed = isinstance(call.args[1], Tensor) and call.args[1].dtype == torch.int64
    name = call.operation.name
    if packed:
        data, sizes, state, weights, biases, layers, share, training, both = call.args
        inputs, lengths = torch._VF._pad_packed_sequence(data, sizes, False, 0.0, len(sizes))
        layout = Layout(lengths, len(sizes), True, False, False, None)
    else:
        inputs, state, weights, biases, layers, share, training, both, batch_first = call.args
        inputs = inputs.transpose(0, 1) if batch_first else inputs
        lengths = torch.full((inputs.shape[1],), inputs.shape[0])
        layout = Layout(lengths, inputs.shape[0], False, False, False, None)
    if training and share and layers > 1:
        raise UnsupportedOperationError("dropout between the layers of the network is on; put the model in eval mode")
    cells = _cells(_kind(name), weights, biases, layers, 2 if both else 1)
    if name == "rnn_relu":
        for cell in (cell for ways in cells for cell in ways):
            cell.activation = RELU  # type: ignore[assignment]  # of an Elman cell
    initial = flat_states(tuple(state) if isinstance(state, tuple | list) else state, layers * (2 if both else 1))
    outputs, finals = _model(call).run_layers(cells, inputs, layout, initial)
    last = torch.stack(finals)
    size = cells[0][0].output_size
    states = (last[..., -size:], last[..., :-size]) if name == "lstm" else (last,)
    if packed:
        outputs = torch.cat([outputs[t, :count] for t, count in enumerate(sizes.tolist())])
    elif batch_first:
        outputs = outputs.transpose(0, 1)
    return outputs, *states


@rule("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def fused_cell(call: Held) -> Any:
    """Run one step of torch's cells."""
    inputs, state, *weights = call.args
    name = call.operation.name
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cell = _kind(name).from_weights(dict(zip(names, [*weights, None, None], strict=False)))
    if name == "rnn_relu_cell":
        cell.activation = RELU  # type: ignore[assignment]  # of an Elman cell
    layout = Layout(torch.ones(len(inputs), dtype=torch.int64), 1, False, False, False, None)
    flat = torch.cat(state[::-1], dim=-1) if isinstance(state, tuple | list) else state
    _, (final,) = _model(call).run_layers([[cell]], inputs[None], layout, [flat])
    size = cell.output_size
    return (final[..., -size:], final[..., :-size]) if name == "lstm_cell" else final


@contextmanager
def networks_as_operations(model: nn.Module) -> Iterator[None]:
    """Make each network of ours in a model one operation of a mode; those of torch.nn are one already."""
    # a user may have replaced the forward of one: its operations are met one by one
    ours = [part for part in model.modules() if isinstance(part, Recurrent) and "forward" not in part.__dict__]
    for part in ours:
        part.__dict__["forward"] = _stand_in(part)
    try:
        yield
    finally:
        for part in ours:
            del part.__dict__["forward"]


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
def held_network(call: Held) -> Any:
    """Run one of our own networks as layers of cells."""
    network, inputs, state, lengths = call.args
    below, layout = read_batch(inputs, network.input_size, network.batch_first, lengths)
    cells = [[network.cell(level, way) for way in range(network.directions)] for level in range(network.num_layers)]
    one, count = cells[0][0], len(network.cells)
    rest = one.state_size - one.output_size
    initial = flat_states(checked_state(state, count, below.shape[1], one.output_size, rest), count)
    outputs, finals = _model(call).run_layers(cells, below, layout, initial)
    last = torch.stack(finals)[:, 0] if layout.unbatched else torch.stack(finals)
    h_n = last[..., rest:]
    return layout.restore(outputs), (h_n, last[..., :rest]) if rest else h_n
