"""The runs of all layers of a network, from its inputs up, and from the outputs that it gave where they are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import Layout
from unrolled.cells.closed_form import ClosedCell
from unrolled.decomposition.opening.network_cells import eval_cell
from unrolled.decomposition.opening.parity import PARITY, Parity
from unrolled.linalg.available_memory import refuse_too_long

__all__ = ["NetworkCall", "run_layers", "run_once", "states_parity"]


@dataclass(frozen=True)
class NetworkCall:
    """The layers of a recurrent network, and what one call gave to them."""

    cells: Sequence[Sequence[Cell]]
    """Of each layer, lowest first: forward and, if bidirectional, backward."""
    inputs: Tensor
    """Shape (time, batch, input)."""
    layout: Layout
    """The lengths of the sequences."""
    initial: Sequence[Tensor | None]
    """The flat initial state of each layer and direction; None for the cell's own."""
    own: Tensor | None = None
    """What the network returned, shape (time, batch, directions · output); None if that is not known."""

    @property
    def directions(self) -> int:
        """1, or 2 if the network is bidirectional."""
        return len(self.cells[0])

    def detached(self) -> NetworkCall:
        """Return the same call on tensors that carry no value."""
        initial = [state if state is None else state.detach() for state in self.initial]
        return replace(self, inputs=self.inputs.detach(), initial=initial)


@torch.no_grad()
def run_layers(call: NetworkCall) -> list[list[LayerRun]]:
    """Run a network layer by layer, each direction in the order in which it reads.

    The top layer's states are recomputed from the network's own outputs: two products over all steps. If they do not
    follow from each other, rounding in the layers below may have grown; those then run by torch's kernels, and if that
    does not help, so does the top layer.
    """
    states = sum(cell.state_size for ways in call.cells for cell in ways)
    refuse_too_long(len(call.inputs), call.inputs.shape[1], states, call.inputs.dtype, call.inputs.device)
    if call.own is None:
        return run_once(call)
    precision = PARITY.get(call.own.dtype, 0.0)  # outputs of a coarser type are not followed
    for by_kernels in (False, True):
        runs = run_once(call, by_kernels)
        if states_parity(runs, call, precision).holds:
            return runs
    return run_once(replace(call, own=None))


def run_once(call: NetworkCall, by_kernels: bool = False) -> list[list[LayerRun]]:
    """Run a network layer by layer; the top layer follows the network's own outputs where they are known.

    Args:
        call: The network, and what it is given.
        by_kernels: Whether the layers below run by torch's kernels.
    """
    runs: list[list[LayerRun]] = []
    for level, ways in enumerate(call.cells):
        below = _top_outputs(runs, call.layout) if runs else call.inputs
        top = level == len(call.cells) - 1
        known = call.own.chunk(len(ways), dim=-1) if call.own is not None and top else None
        layer: list[LayerRun] = []
        for way, cell in enumerate(ways):
            start, reads = call.initial[level * len(ways) + way], call.layout.turn(below, way)
            first = (cell.initial_state(below.shape[1]) if start is None else start).to(below)
            if known is None:
                layer.append(_run(cell, reads, first, by_kernels))
            else:
                layer.append(cell.run_from_outputs(reads, call.layout.turn(known[way], way), first))
        runs.append(layer)
    return runs


def _top_outputs(runs: Sequence[Sequence[LayerRun]], layout: Layout) -> Tensor:
    """Return the hidden outputs of the top layer, shape (time, batch, directions · output), in token order."""
    return layout.in_token_order([run.cell.hidden(run.image) for run in runs[-1]])


def states_parity(
    runs: Sequence[Sequence[LayerRun]],
    call: NetworkCall,
    precision: float,
    states: Iterable[Tensor] | None = None,
    own_type: torch.dtype | None = None,
) -> Parity:
    """Compare the top layer's outputs with those that the network gave; padding does not count.

    Args:
        runs: The runs of all layers.
        call: The network, and what it gave; where that is NaN or infinite there is no parity.
        precision: See :class:`~unrolled.decomposition.opening.parity.Parity`.
        states: What the size of the numbers is measured by; None for the outputs.
        own_type: The type in which the network computed; None for that of what it gave.
    """
    own, layout = call.own, call.layout
    assert own is not None
    if not own.numel():  # a model may call its network with no rows
        return Parity(0.0, 0.0, precision)
    gap = float(layout.blank((_top_outputs(runs, layout) - own).abs()).max())
    largest = [float(layout.blank(each).abs().max()) for each in ((own,) if states is None else states)]
    tiny = _smallest(own_type or own.dtype, own.dtype, len(runs), precision)
    parity = Parity(gap, max(largest), precision, floor=tiny)
    if parity.holds or not precision:
        return parity
    return replace(parity, floor=max(tiny, min(1.0, _size_of_sums(runs, call))))


_STEPS = 5
"""How many of the smallest numbers of a half type the states of a layer may be off; the most measured was 3.3."""


def _smallest(own_type: torch.dtype, computed: torch.dtype, layers: int, precision: float) -> float:
    """Return what states are measured by that are rounded to multiples of the smallest number of their type."""
    kind = torch.finfo(own_type)
    if layers > 1 or own_type == computed:  # whose rounding grows with layers, or with the terms of a sum
        return kind.tiny
    return min(kind.tiny, _STEPS * kind.tiny * kind.eps / precision)


def _size_of_sums(runs: Sequence[Sequence[LayerRun]], call: NetworkCall) -> float:
    """Return the size of what the outputs are sums of: how much they change from one type to another, over rounding."""
    if not all(isinstance(cell, ClosedCell) for ways in call.cells for cell in ways):
        return 1.0  # a step of any operations may keep a type of its own
    other = torch.float32 if call.inputs.dtype == torch.float64 else torch.float64
    again = NetworkCall(
        [[eval_cell(cell, other) for cell in ways] for ways in call.cells],
        call.inputs.to(other),
        call.layout,
        [state if state is None else state.to(other) for state in call.initial],
        None if call.own is None else call.own.to(other),
    )
    moved = _top_outputs(run_once(again), call.layout).double() - _top_outputs(runs, call.layout).double()
    return float(call.layout.blank(moved).abs().max()) / torch.finfo(torch.float32).eps


def _run(cell: Cell, inputs: Tensor, first: Tensor, by_kernels: bool) -> LayerRun:
    if by_kernels and isinstance(cell, ClosedCell):
        return cell.run_from_outputs(inputs, cell.outputs(inputs, first)[0], first)
    return cell.run(inputs, first)
