"""The runs of all layers of a network, from its inputs up, and from the outputs that it gave where they are known."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.cells.base import Cell, LayerRun
from unrolled.cells.batch_layout import Layout
from unrolled.cells.closed_form import ClosedCell
from unrolled.linalg.available_memory import refuse_too_long

__all__ = ["run_layers", "run_once", "top_outputs"]

PARITY = {torch.float64: 1e-9, torch.float32: 1e-3}
"""How far a known output may be from the state that follows from the one before it."""


@torch.no_grad()
def run_layers(
    cells: Sequence[Sequence[Cell]],
    inputs: Tensor,
    layout: Layout,
    initial: Sequence[Tensor | None],
    own: Tensor | None = None,
) -> list[list[LayerRun]]:
    """Run a network layer by layer, each direction in the order in which it reads.

    The top layer's states are recomputed from the network's own outputs: two products over all steps. If they do not
    follow from each other, rounding in the layers below may have grown; those then run by torch's kernels, and if that
    does not help, so does the top layer.

    Args:
        cells: Of each layer, lowest first: forward and, if bidirectional, backward.
        inputs: Shape (time, batch, input).
        layout: The lengths of the sequences.
        initial: The flat initial state of each layer and direction; None for the cell's own.
        own: What the network gave, shape (time, batch, directions · output); None if that is not known.
    """
    states = sum(cell.state_size for ways in cells for cell in ways)
    refuse_too_long(len(inputs), inputs.shape[1], states, inputs.dtype, inputs.device)
    for by_kernels in (False, True):
        runs = run_once(cells, inputs, layout, initial, own, by_kernels)
        if own is None or _follow(top_outputs(runs, layout), own, layout):
            return runs
    return run_once(cells, inputs, layout, initial)


def run_once(
    cells: Sequence[Sequence[Cell]],
    inputs: Tensor,
    layout: Layout,
    initial: Sequence[Tensor | None],
    own: Tensor | None = None,
    by_kernels: bool = False,
) -> list[list[LayerRun]]:
    """Run a network layer by layer; the top layer follows the network's own outputs where they are known.

    The arguments are those of :func:`run_layers`; ``by_kernels`` runs the layers below by torch's kernels.
    """
    runs: list[list[LayerRun]] = []
    for level, ways in enumerate(cells):
        below = top_outputs(runs, layout) if runs else inputs
        given = own.chunk(len(ways), dim=-1) if own is not None and level == len(cells) - 1 else None
        layer: list[LayerRun] = []
        for way, cell in enumerate(ways):
            start, reads = initial[level * len(ways) + way], layout.turn(below, way)
            first = (cell.initial_state(below.shape[1]) if start is None else start).to(below)
            if given is None:
                layer.append(_run(cell, reads, first, by_kernels))
            else:
                layer.append(cell.run_from_outputs(reads, layout.turn(given[way], way), first))
        runs.append(layer)
    return runs


def top_outputs(runs: Sequence[Sequence[LayerRun]], layout: Layout) -> Tensor:
    """Return the hidden outputs of the top layer, shape (time, batch, directions · output), in token order."""
    return layout.in_token_order([run.cell.hidden(run.image) for run in runs[-1]])


def _run(cell: Cell, inputs: Tensor, first: Tensor, by_kernels: bool) -> LayerRun:
    if by_kernels and isinstance(cell, ClosedCell):
        return cell.run_from_outputs(inputs, cell.outputs(inputs, first)[0], first)
    return cell.run(inputs, first)


def _follow(found: Tensor, own: Tensor, layout: Layout) -> bool:
    """Whether recomputed outputs are the network's own."""
    gap = layout.blank(found - own).abs().max()
    return float(gap) <= PARITY.get(own.dtype, 0.0) * max(1.0, float(own.abs().max()))
