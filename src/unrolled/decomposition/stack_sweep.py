r"""One forward sweep over a deep bidirectional network, for many columns of terms at once.

A column is a class of paths from where a token enters to the state: the paths of one token, of one span, or all paths.
At every step a layer's columns are A_t times what they were, plus C_t times what the layer below hands up, plus g_t in
the column where the token of this step enters. What a layer hands up is its state without g_t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.decomposition.bidirectional_stack import BidirectionalStack, reverse_blocks
from unrolled.linalg.operators import Workspace

__all__ = ["SpanColumns", "Step", "TokenColumns", "TotalColumns", "stack_sweep"]


@dataclass(frozen=True)
class Blocks:
    """The hidden states of a layer by column, at every step."""

    values: Tensor
    """Shape (columns, time, batch, features)."""
    places: Tensor
    """The place of each column in the layer above."""


class Columns(ABC):
    """The columns of one sweep. Those of the lowest layer are the first of those of the layers above."""

    @abstractmethod
    def count(self, level: int) -> int:
        """Return the number of columns of a layer."""

    def source(self, time: int) -> int:
        """Return the column where the token of a step enters."""
        return 0

    def moved(self, block: Tensor) -> tuple[Tensor, slice]:
        """Move the columns of a layer on by one token: return them, and which columns they become."""
        return block, slice(0, len(block))

    def handed_up(self, level: int) -> Tensor:
        """Return the columns that a layer hands up: all that are not zero without g."""
        return torch.arange(self.count(level))

    def turned(self, blocks: Blocks, layout: Layout) -> Blocks:
        """Bring the blocks of a backward direction into token order, or back."""
        return Blocks(reverse_blocks(layout, blocks.values), blocks.places)


class TotalColumns(Columns):
    """One column: all paths."""

    def count(self, level: int) -> int:
        """Return 1."""
        return 1


class TokenColumns(Columns):
    """One column for each token, in the order in which a direction reads: all paths that enter there."""

    def __init__(self, time: int) -> None:
        self.time = time

    def count(self, level: int) -> int:
        """Return the number of tokens."""
        return self.time

    def source(self, time: int) -> int:
        """Return the token's own column."""
        return time

    def turned(self, blocks: Blocks, layout: Layout) -> Blocks:
        """Reverse the steps and the columns."""
        by_step = reverse_blocks(layout, blocks.values)
        return Blocks(reverse_blocks(layout, by_step.transpose(0, 1)).transpose(0, 1), blocks.places)


class SpanColumns(Columns):
    """One column for each span: the paths that have seen its tokens, from the leftmost to the rightmost, and no other.

    A span is named by the tokens behind and ahead of the current one, as the direction reads. Spans of more than
    ``longest`` tokens are dropped.
    """

    def __init__(self, longest: int) -> None:
        n = self.longest = longest
        pairs = [(a, 0) for a in range(n)]
        pairs += [(a, b) for a in range(1, n) for b in range(1, n - a)]
        self._behind_nothing = len(pairs)  # from here on, and in column 0
        pairs += [(0, b) for b in range(1, n)]
        place = {pair: k for k, pair in enumerate(pairs)}
        self.behind, self.ahead = torch.tensor(pairs).T
        # (a, b) was (a - 1, b + 1) before; (a, 0) also was (a - 1, 0); (n - 1, 0) only that
        self._before = torch.tensor([place.get((a - 1, b + 1), 0) for a, b in pairs[1 : self._behind_nothing]]).long()
        self._swapped = torch.tensor([place[b, a] for a, b in pairs])

    def count(self, level: int) -> int:
        """Return the number of spans; the lowest layer has seen nothing ahead."""
        return len(self.behind) if level else self.longest

    def moved(self, block: Tensor) -> tuple[Tensor, slice]:
        """Let one more token lie behind."""
        if len(block) == self.longest:  # the lowest layer, or unigrams alone
            return block[:-1], slice(1, self.longest)
        result = block.index_select(0, self._before.to(block.device))
        result[: self.longest - 1] += block[: self.longest - 1]
        return result, slice(1, self._behind_nothing)

    def handed_up(self, level: int) -> Tensor:
        """Return all spans but the token alone."""
        return torch.arange(1, self.count(level))

    def turned(self, blocks: Blocks, layout: Layout) -> Blocks:
        """Reverse the steps; what lies behind in one direction lies ahead in the other."""
        return Blocks(reverse_blocks(layout, blocks.values), self._swapped[blocks.places])


@dataclass(frozen=True)
class Step:
    """The columns of one step of one layer and direction, in the order in which it reads."""

    level: int
    way: int
    time: int
    block: Tensor
    """Shape (columns, batch, state)."""


def stack_sweep(
    stack: BidirectionalStack, columns: Columns, terms: bool = True, initial: bool = False, top: int | None = None
) -> Iterator[Step]:
    """Sweep forward over every layer and direction, lowest layer first.

    Args:
        stack: The network.
        columns: Which paths are kept apart.
        terms: Whether the tokens enter.
        initial: Whether the initial states enter, in the first column.
        top: The direction of the top layer to sweep over; None for both.
    """
    below: Blocks | None = None
    for level, ways in enumerate(stack.levels):
        handed: list[Blocks] = []
        last = level == len(stack.levels) - 1
        for way, layer in enumerate(ways):
            if last and top not in (None, way):
                continue
            given = below if below is None or not way else columns.turned(below, stack.layout)
            up = None if last else _empty(layer, columns.handed_up(level))
            for time, block in _layer_sweep(layer, columns, level, given, up, terms, initial):
                yield Step(level, way, time, block)
            if up is not None:
                handed.append(columns.turned(up, stack.layout) if way else up)
        below = _side_by_side(*handed) if handed else None


def _empty(layer: AffineSequence, places: Tensor) -> Blocks:
    time, batch, _ = layer.g.shape
    return Blocks(layer.g.new_empty(len(places), time, batch, layer.layers[0].cell.output_size), places)


def _layer_sweep(
    layer: AffineSequence,
    columns: Columns,
    level: int,
    below: Blocks | None,
    up: Blocks | None,
    terms: bool,
    initial: bool,
) -> Iterator[tuple[int, Tensor]]:
    """Sweep over one layer in one direction, and fill what it hands up."""
    (operator,), cell = layer.operators, layer.layers[0].cell
    device, workspace = layer.g.device, Workspace()
    places = None if below is None else below.places.to(device)
    chosen = None if up is None else up.places.to(device)
    block = layer.g.new_zeros(columns.count(level), *layer.g.shape[1:])
    if initial:
        block[0] = layer.initial
    for t in range(len(layer.g)):
        here, old = operator.at(t), block
        block = torch.zeros_like(block)
        if t or initial:
            moved, becomes = columns.moved(old)
            block[becomes] = here.apply(moved, workspace=workspace)
        if below is not None and places is not None:
            inputs = below.values[:, t].contiguous()
            still = inputs.new_zeros(*inputs.shape[:-1], block.shape[-1])
            block.index_add_(0, places, here.apply(still, inputs, workspace=workspace))
        if up is not None and chosen is not None:
            up.values[:, t] = cell.hidden(block)[chosen]
        if terms:
            block[columns.source(t)] += layer.g[t]
        yield t, block


def _side_by_side(forward: Blocks, backward: Blocks) -> Blocks:
    """Join the features of both directions, column by column."""
    order = backward.places.argsort()
    if torch.equal(forward.places, backward.places[order]):  # each column has both
        return Blocks(
            torch.cat((forward.values, backward.values[order.to(backward.values.device)]), -1), forward.places
        )
    wide = [torch.cat((forward.values, torch.zeros_like(forward.values)), -1)]
    wide.append(torch.cat((torch.zeros_like(backward.values), backward.values), -1))
    return Blocks(torch.cat(wide), torch.cat((forward.places, backward.places)))
