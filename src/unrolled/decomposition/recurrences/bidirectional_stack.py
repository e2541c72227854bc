r"""A deep bidirectional network, linear in what each token alone makes of every layer.

One layer's states in one direction follow s_t = g_t + A_t s_{t-1} + C_t Δu_t. Its input is u⁰ + Δu, where u⁰ is what
the token alone makes of the layer below, in both directions: the hidden parts of g there. So token t enters every
layer and direction as g_t, and what the layer below makes of it together with other tokens enters as Δu.

Backward, a readout's covector sweeps a layer; Cᵀλ goes to both directions of the layer below, where it reads s - g.
That takes one sweep for each layer and direction, the cost of a backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.sweeps import running_sum
from unrolled.errors import UnrolledError
from unrolled.expansions.base import Linearisation
from unrolled.linalg.sweep_back import sweep_back
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = [
    "BidirectionalStack",
    "EnteringCovectors",
    "entering_covectors",
    "expand_stack",
    "token_contributions",
    "total_states",
]


@dataclass(frozen=True)
class BidirectionalStack:
    """g_t, A_t and C_t of every layer and direction."""

    levels: tuple[tuple[AffineSequence, AffineSequence], ...]
    """Lowest layer first: forward and backward, each of one layer, in the order in which it reads."""
    layout: Layout

    @property
    def failure(self) -> UnrolledError | None:
        """Why the expansion of a layer is not to be trusted; None if it is."""
        return next((layer.failure for ways in self.levels for layer in ways if layer.failure is not None), None)


@without_grad_and_autocast()
def expand_stack(
    directions: Sequence[Sequence[LayerRun]], layout: Layout, linearisation: Linearisation, tolerance: float
) -> BidirectionalStack:
    """Linearise a run of a deep bidirectional network, lowest layer first.

    Args:
        directions: The layers of the forward direction and those of the backward one, in the order in which they read.
        layout: The lengths of the sequences.
        linearisation: How a layer is expanded along the line from (u⁰, 0) to its input and state.
        tolerance: The relative error over the whole sequence; each step gets an equal share.
    """
    per_step = tolerance / max(1, layout.time)
    levels = []
    alone: Tensor | None = None
    for ways in zip(*directions, strict=True):
        found, bases = [], []
        for way, run in enumerate(ways):
            origin = run.inputs if alone is None else layout.turn(alone, way)
            g, operator, failure = linearisation.expand_or_keep(run.ray(origin), per_step)
            found.append(AffineSequence(g, (operator,), (run,), failure))
            bases.append(run.cell.hidden(g))
        levels.append((found[0], found[1]))
        alone = layout.in_token_order(bases)
    return BidirectionalStack(tuple(levels), layout)


@without_grad_and_autocast()
def total_states(stack: BidirectionalStack, terms: bool = True) -> tuple[Tensor, Tensor]:
    """Sum all paths at every position: the top layer's hidden states in token order, each (time, batch, hidden).

    Without ``terms``, only the paths that begin at an initial state.
    """
    below: Tensor | None = None  # what both directions of the layer below pass on, side by side
    totals: list[Tensor] = []
    for ways in stack.levels:
        totals, of_above = [], []
        for way, layer in enumerate(ways):
            (operator,), cell = layer.operators, layer.layers[0].cell
            entering = layer.g if terms else torch.zeros_like(layer.g)
            if below is not None:
                entering = entering + operator.apply_inputs(stack.layout.turn(below, way)[None])[0]
            states = cell.hidden(running_sum(replace(layer, g=entering)))
            totals.append(stack.layout.turn(states, way))
            of_above.append(stack.layout.turn(states - cell.hidden(layer.g), way) if terms else totals[-1])
        below = torch.cat(of_above, dim=-1)
    return totals[0], totals[1]


@without_grad_and_autocast()
def token_contributions(stack: BidirectionalStack, readout: Sequence[Sequence[Tensor | None]]) -> tuple[Tensor, Tensor]:
    """Compute what every token and the initial states contribute to Σ w_tᵀ s_t over all layers and directions.

    Args:
        stack: The network.
        readout: w_t of each layer and direction, shape (classes, time, batch, state), in token order, zero in padding;
            None for a layer that is not read.

    Returns:
        The contributions of the tokens, shape (classes, time, batch), and of the initial states, (classes, batch).
    """
    own = stack.levels[0][0].g  # (time, batch, state)
    tokens, initial = own.new_zeros(1, *own.shape[:2]), own.new_zeros(1, own.shape[1])  # where nothing is read
    for found in entering_covectors(stack, readout):
        layer = stack.levels[found.level][found.way]
        entering = (found.of_g * layer.g).sum(dim=-1, keepdim=True)
        tokens = tokens + stack.layout.turn(entering, found.way, axis=1)[..., 0]
        initial = initial + (found.of_start * layer.initial).sum(dim=-1)
    return tokens, initial


@dataclass(frozen=True)
class EnteringCovectors:
    """How a readout reads what enters one direction of a layer, in the order in which it reads."""

    level: int
    way: int
    of_g: Tensor
    """Shape (classes, time, batch, state)."""
    of_start: Tensor
    """Of the initial state, shape (classes, batch, state)."""


def entering_covectors(
    stack: BidirectionalStack, readout: Sequence[Sequence[Tensor | None]]
) -> Iterator[EnteringCovectors]:
    """Carry w_t, as in :func:`token_contributions`, back to what enters, the top layer first."""
    of_above: Sequence[Tensor] | None = None  # Cᵀλ of the layer above, for each direction
    for level in reversed(range(len(stack.levels))):
        below = torch.zeros((), device="cpu")
        for way, layer in enumerate(stack.levels[level]):
            read, above = readout[level][way], None if of_above is None else of_above[way]
            if read is None and above is None:
                continue
            read, above = (None if each is None else stack.layout.turn(each, way, axis=1) for each in (read, above))
            (operator,), cell = layer.operators, layer.layers[0].cell
            if read is None:
                assert above is not None
                covectors = above.new_zeros(*above.shape[:-1], cell.state_size)
            else:
                covectors = read.clone()
            if above is not None:
                cell.hidden(covectors).add_(above)
            first, by_input = sweep_back(operator, covectors.transpose(0, 1), with_inputs=level > 0)
            if by_input is not None:
                below = below + stack.layout.turn(by_input.transpose(0, 1), way, axis=1)
            if above is not None:  # the layer above reads all but g of this one
                cell.hidden(covectors).sub_(above)
            yield EnteringCovectors(level, way, covectors, first)
        of_above = below.chunk(2, dim=-1) if below.dim() else None
