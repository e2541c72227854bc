r"""Forward sweeps over a deep bidirectional network, for many columns of terms at once.

A column is a class of paths from where a token enters to the state: the paths of one token, or of one span. At every
step a layer's columns are A_t times what they were, plus C_t times what both directions of the layer below pass on,
plus g_t in the column where the token of this step enters. What a layer passes on is its state without g_t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack
from unrolled.linalg.operators import Workspace

__all__ = ["Received", "SpanColumns", "TokenColumns", "chosen_columns", "layer_sweep", "receivers"]


@dataclass(frozen=True)
class Received:
    """What one direction of a layer passes on, by column, in the order in which the receiver reads."""

    values: Tensor
    """Shape (time, columns, batch, features)."""
    places: Tensor
    """The receiver's place of each column."""


class SweepColumns(ABC):
    """The columns of one sweep. Those of the lowest layer are the first of those of the layers above."""

    @abstractmethod
    def count(self, lowest: bool) -> int:
        """Return the number of columns of a layer."""

    @abstractmethod
    def source(self, time: int) -> int:
        """Return the column where the token of a step enters."""

    @abstractmethod
    def moved(self, block: Tensor) -> tuple[Tensor, Tensor]:
        """Move the columns of a layer on by one token: return them, and which columns they become."""

    @abstractmethod
    def alive(self, places: Tensor, time: int) -> Tensor:
        """Return which of some columns may differ from zero at a step, as indices."""

    @abstractmethod
    def passed_on(self, lowest: bool) -> Tensor:
        """Return the columns that a layer passes on: all that are not zero without g."""

    @abstractmethod
    def turned(self, received: Received, layout: Layout) -> Received:
        """Return the same for a receiver that reads in the other direction."""


class TokenColumns(SweepColumns):
    """One column for each token, in the order in which a direction reads: all paths that enter there."""

    def __init__(self, time: int) -> None:
        self._all = torch.arange(time, device="cpu")

    def count(self, lowest: bool) -> int:
        """Return the number of tokens."""
        return len(self._all)

    def source(self, time: int) -> int:
        """Return the token's own column."""
        return time

    def moved(self, block: Tensor) -> tuple[Tensor, Tensor]:
        """Leave the columns as they are."""
        return block, self._all

    def alive(self, places: Tensor, time: int) -> Tensor:  # paths from both sides
        """Return all of them."""
        return torch.arange(len(places), device="cpu")

    def passed_on(self, lowest: bool) -> Tensor:
        """Return all columns."""
        return self._all

    def turned(self, received: Received, layout: Layout) -> Received:
        """Reverse the steps and the columns."""
        return Received(layout.reverse(layout.reverse(received.values), axis=1), received.places)


class SpanColumns(SweepColumns):
    """One column for each span: the paths that have seen its tokens, from the leftmost to the rightmost, and no other.

    A span is named by the tokens behind and ahead of the current one, as the direction reads. Spans of more than
    ``longest`` tokens are dropped.
    """

    def __init__(self, longest: int, time: int) -> None:
        n, self.time = min(longest, time), time
        self.longest = n
        pairs = [(a, 0) for a in range(n)]
        pairs += [(a, b) for a in range(1, n) for b in range(1, n - a)]
        behind_nothing = len(pairs)  # from here on, and in column 0
        pairs += [(0, b) for b in range(1, n)]
        place = {pair: k for k, pair in enumerate(pairs)}
        self.behind, self.ahead = torch.tensor(pairs, device="cpu").T
        self._becomes = torch.arange(1, behind_nothing, device="cpu")
        # (a, b) was (a - 1, b + 1) before; (a, 0) also was (a - 1, 0); (n - 1, 0) only that
        self._before = torch.tensor(
            [place.get((a - 1, b + 1), 0) for a, b in pairs[1:behind_nothing]], device="cpu"
        ).long()
        self._swapped = torch.tensor([place[b, a] for a, b in pairs], device="cpu")

    def count(self, lowest: bool) -> int:
        """Return the number of spans; the lowest layer has seen nothing ahead."""
        return self.longest if lowest else len(self.behind)

    def source(self, time: int) -> int:  # the token alone is the same column at all steps
        """Return the column of the token alone."""
        return 0

    def moved(self, block: Tensor) -> tuple[Tensor, Tensor]:
        """Let one more token lie behind."""
        if len(block) == self.longest:  # the lowest layer, or unigrams alone
            return block[:-1], self._becomes[: self.longest - 1]
        result = block.index_select(0, self._before.to(block.device))
        result[: self.longest - 1] += block[: self.longest - 1]
        return result, self._becomes

    def alive(self, places: Tensor, time: int) -> Tensor:
        """Return those that lie inside the text."""
        inside = (self.behind[places] <= time) & (self.ahead[places] < self.time - time)
        return inside.nonzero()[:, 0]

    def passed_on(self, lowest: bool) -> Tensor:
        """Return all spans but the token alone."""
        return torch.arange(1, self.count(lowest), device="cpu")

    def turned(self, received: Received, layout: Layout) -> Received:
        """Reverse the steps; what lies behind in one direction lies ahead in the other."""
        return Received(layout.reverse(received.values), self._swapped[received.places])


def receivers(stack: BidirectionalStack, columns: SweepColumns) -> Iterator[tuple[tuple[Received, ...], ...]]:
    """Yield for each layer, lowest first, what its two directions receive from both directions of the layer below."""
    received: tuple[tuple[Received, ...], ...] = ((), ())
    for level, ways in enumerate(stack.levels):
        yield received
        if level + 1 < len(stack.levels):
            forward, backward = (
                _pass_on(layer, columns, mine, lowest=level == 0) for layer, mine in zip(ways, received, strict=True)
            )
            received = (
                (forward, columns.turned(backward, stack.layout)),
                (columns.turned(forward, stack.layout), backward),
            )


def _pass_on(layer: AffineSequence, columns: SweepColumns, received: tuple[Received, ...], lowest: bool) -> Received:
    """Sweep over one direction of a layer for what it passes on, in the order in which it reads."""
    places, (time, batch, _) = columns.passed_on(lowest), layer.g.shape
    up = Received(layer.g.new_empty(time, len(places), batch, layer.layers[0].cell.output_size), places)
    for _ in layer_sweep(layer, columns, received, lowest, up):
        pass
    return up


def layer_sweep(
    layer: AffineSequence,
    columns: SweepColumns,
    received: tuple[Received, ...],
    lowest: bool,
    up: Received | None = None,
) -> Iterator[Tensor]:
    """Sweep over one direction of a layer.

    Args:
        layer: The layer.
        columns: Which paths are kept apart.
        received: What both directions of the layer below pass on.
        lowest: Whether there is none below.
        up: Filled with what this layer passes on.

    Yields:
        Its columns at each step, shape (columns, batch, state).
    """
    (operator,), workspace = layer.operators, Workspace()
    block = layer.g.new_zeros(columns.count(lowest), *layer.g.shape[1:])
    for t, g in enumerate(layer.g):
        old, places = columns.moved(block)
        block = torch.zeros_like(block)
        alive = columns.alive(places, t)
        if t and len(alive):
            block[places[alive]] = operator.at(t).apply(chosen_columns(old, alive), workspace=workspace)
        for become, images in _entering(layer, columns, received, t, workspace):
            block.index_add_(0, become.to(block.device), images)
        if up is not None:
            up.values[t] = layer.layers[0].cell.hidden(block)[up.places]
        block[columns.source(t)] += g
        yield block


def _entering(
    layer: AffineSequence, columns: SweepColumns, received: tuple[Received, ...], time: int, workspace: Workspace
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what enters a layer at one step from each direction below: the columns' places, and C_t times them."""
    operator, first = layer.operators[0].at(time), 0
    for each in received:
        alive = columns.alive(each.places, time)
        if len(alive):
            yield each.places[alive], operator.apply_inputs(chosen_columns(each.values[time], alive), first, workspace)
        first += each.values.shape[-1]


def chosen_columns(block: Tensor, chosen: Tensor) -> Tensor:
    """Return some of the columns: a view, if they are the first ones."""
    count = len(chosen)
    return block[:count] if not count or int(chosen[-1]) == count - 1 else block[chosen]
