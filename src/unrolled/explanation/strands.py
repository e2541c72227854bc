r"""Strands: the recurrent calls of one run, and how they hang together.

A **strand** is one call of a recurrent network in one direction. What it reads of the states of earlier strands makes
it

- **continue** another strand of the same network: its initial state is that one's last state, as it is or behind a
  position-wise function. Strands that continue one another are a **chain**;
- **a level above** other strands: its inputs read theirs position by position. The line of its expansion then begins
  at what the token alone makes of the levels below;
- or **carry**: what else it reads of them (a context of attention, the last state of an encoder) belongs to their
  n-grams, not to its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.decomposition.bidirectional_stack import BidirectionalStack
from unrolled.held_forward.recorded_maps import PositionMap, SelectionMap, position_map, pull_back, readers

__all__ = ["Continuation", "Strand", "find_continuation", "find_levels_below", "reads"]


@dataclass(eq=False)
class Strand:
    """One call of a recurrent network in one direction; its tensors are in the order in which it reads."""

    network: str
    """Path of the network in the model."""
    call: int
    """Number of the call, among the calls of all networks."""
    direction: int
    """0 for forward, 1 for backward."""
    both: bool
    """Whether the call has two directions."""
    lengths: Tensor
    """Number of steps of each sequence, shape (batch,)."""
    sequence: AffineSequence
    """Where the layers of both directions read each other, it cannot be swept by itself."""
    states: Tensor
    """The leaf that the model reads, shape (time, batch, state), all layers side by side."""
    inputs: Tensor
    """What the lowest layer reads, with its graph, shape (time, batch, input); in token order if there is a stack."""
    start: Tensor
    """The initial state with its graph, shape (batch, state)."""
    parity: float
    """The largest difference between the recomputed states and the network's own."""
    stack: BidirectionalStack | None = None
    """Of a call of several layers in both directions: both of them; None of any other call."""
    order: Tensor | None = None
    """The place of each sequence before the batch was sorted by length; None if it was not."""
    below: tuple[tuple[Strand, PositionMap], ...] = ()
    """The levels below it, and how it reads their states."""
    before: Strand | None = None
    """The strand that it continues."""
    join: PositionMap | None = None
    """What the state passes in between; None if it is carried on as it is."""
    rows: Tensor | None = None
    """Which sequence of ``before`` each of its sequences continues; None for all in order."""
    alone: tuple[Tensor, Tensor] | None = None
    """Where it carries: the beginning of the input's line as a leaf, and g as a linear function of it."""
    carried: Tensor | None = None
    """The part of g that is carried, shape (time, batch, state); None for none."""
    chain: list[Strand] = field(default_factory=list)
    """The chain that it belongs to, in order."""

    def __post_init__(self) -> None:
        self.chain = [self]

    def follow(self, found: Continuation) -> None:
        """Continue another strand."""
        self.before, self.join, self.rows = found.before, found.join, found.rows
        self.chain = found.before.chain
        self.chain.append(self)

    @property
    def own(self) -> Tensor:
        """What its own tokens add to the state, shape (time, batch, state)."""
        return self.sequence.g if self.carried is None else self.sequence.g - self.carried


@dataclass(frozen=True)
class Continuation:
    """How an initial state follows from the last state of an earlier strand."""

    before: Strand
    join: PositionMap | None
    rows: Tensor | None


def reads(result: Tensor, strands: Sequence[Strand]) -> list[Strand]:
    """Return the strands whose states a tensor depends on."""
    if not result.requires_grad:
        return []
    found = pull_back(result, [strand.states for strand in strands], torch.ones_like(result))
    return [strand for strand, gradient in zip(strands, found, strict=True) if gradient is not None]


def find_continuation(start: Tensor, network: str, strands: Sequence[Strand]) -> Continuation | None:
    """Find the strand that an initial state, shape (batch, state), continues.

    It is the last of its chain, of the same network, with one direction, and only its last states are read.
    """
    for strand in reversed(reads(start, strands)):
        if strand.network != network or strand.both or strand.chain[-1] is not strand:
            continue
        numbers = readers(start, strand.states)
        if numbers is None or strand.states.shape[-1] != start.shape[-1]:
            continue
        time, batch, _ = strand.states.shape
        last, every = strand.lengths - 1, torch.arange(batch, device="cpu")
        at_end = numbers.reshape(time, batch)[last, every]
        if int((at_end >= 0).sum()) != int((numbers >= 0).sum()) or int((at_end >= 0).sum()) != len(start):
            continue
        rows = torch.empty(len(start), dtype=torch.int64, device="cpu")
        rows[at_end[at_end >= 0]] = every[at_end >= 0]
        join = position_map(start, strand.states, lambda g: g[last, every][rows])  # noqa: B023  # used at once
        straight = len(rows) == batch and torch.equal(rows, every)
        return Continuation(strand, None if _is_identity(join) else join, None if straight else rows)
    return None


def _is_identity(found: PositionMap) -> bool:
    if not isinstance(found, SelectionMap) or len(found.index) != found.size:
        return False
    return torch.equal(found.index, torch.arange(found.size, device="cpu")) and bool((found.weight == 1).all())


def find_levels_below(
    inputs: Tensor, lengths: Tensor, network: str, before: Strand | None, strands: Sequence[Strand]
) -> tuple[tuple[Strand, PositionMap], ...] | None:
    """Find the strands that inputs, shape (time, batch, input), read position by position.

    Returns:
        The strands, lowest first, with how they are read; None if a strand that continues another one does not read the
        strands that continue the levels below that one.
    """
    candidates = [strand for strand in reads(inputs, strands) if not strand.both and strand.network != network]
    if before is None:
        found = [(each, link) for each in candidates if each.before is None and (link := _link(inputs, lengths, each))]
        return tuple(found)
    pairs = []
    for lower, _ in before.below:
        place = lower.chain.index(lower) + 1
        above = lower.chain[place] if place < len(lower.chain) else None
        link = _link(inputs, lengths, above) if above is not None and above in candidates else None
        if above is None or link is None:
            return None
        pairs.append((above, link))
    return tuple(pairs)


def _link(inputs: Tensor, lengths: Tensor, strand: Strand) -> PositionMap | None:
    """Return how each position reads the same position of a strand; None if it does not."""
    if strand.states.shape[:2] != inputs.shape[:2] or not torch.equal(strand.lengths, lengths):
        return None
    numbers = readers(inputs, strand.states)
    if numbers is None or bool(((numbers >= 0) & (numbers != torch.arange(len(numbers), device="cpu"))).any()):
        return None
    return position_map(inputs, strand.states, lambda gradient: gradient)
