r"""Strands: the recurrent calls of one run, and how they hang together.

A **strand** is one call of a recurrent network in one direction. What it reads of the states of earlier strands makes
it

- **continue** another strand of the same network: its initial state is that one's last state, as it is or behind a
  position-wise function, or a mixture of that state and of the state that it began with, as behind a mask. Strands that
  continue one another are a **chain**;
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

from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack
from unrolled.held_forward.recorded_maps import PositionMap, position_map, pull_back, readers

__all__ = ["Strand", "find_levels_below", "strands_read"]


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
    """The strand before it in its chain; None for the first."""
    continued: tuple[tuple[Strand, Tensor, Tensor], ...] = ()
    """The strands of its chain that its sequences continue: which of their sequences, and which of its own."""
    join: PositionMap | None = None
    """What their last states pass in between; None if they are carried on as they are."""
    bypass: Tensor | None = None
    """The factor of their initial states, which are added to that, shape (batch, state); None if they are not read."""
    rows: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64, device="cpu"))
    """The numbers of its sequences within its chain, shape (batch,)."""
    alone: tuple[Tensor, Tensor] | None = None
    """Where it carries: the beginning of the input's line as a leaf, and g as a linear function of it."""
    carried: Tensor | None = None
    """The part of g that is carried, shape (time, batch, state); None for none."""
    chain: list[Strand] = field(default_factory=list)
    """The chain that it belongs to, in order."""

    def __post_init__(self) -> None:
        self.chain = [self]
        self.rows = torch.arange(len(self.lengths), device="cpu")

    @property
    def sequences_of_chain(self) -> int:
        """Number of the sequences of its chain; some may begin later than others."""
        return 1 + max(int(each.rows.max()) for each in self.chain)

    @property
    def moved(self) -> Tensor:
        """What its states are more than g: by so much it moves the inputs of a level above."""
        return self.states.detach() - self.sequence.g

    @property
    def own(self) -> Tensor:
        """What its own tokens add to the state, shape (time, batch, state)."""
        return self.sequence.g if self.carried is None else self.sequence.g - self.carried


def strands_read(result: Tensor, strands: Sequence[Strand]) -> list[Strand]:
    """Return the strands whose states a tensor depends on."""
    if not result.requires_grad:
        return []
    found = pull_back(result, [strand.states for strand in strands], torch.ones_like(result))
    return [strand for strand, gradient in zip(strands, found, strict=True) if gradient is not None]


def find_levels_below(
    inputs: Tensor, lengths: Tensor, network: str, before: Strand | None, strands: Sequence[Strand]
) -> tuple[tuple[Strand, PositionMap], ...] | None:
    """Find the strands that inputs, shape (time, batch, input), read position by position.

    Returns:
        The strands, lowest first, with how they are read; None if a strand that continues another one does not read the
        strands that continue the levels below that one.
    """
    candidates = [strand for strand in strands_read(inputs, strands) if not strand.both and strand.network != network]
    if before is None:
        first = [each for each in candidates if each.before is None and _is_read(inputs, each)]
        return tuple((each, link) for each in first if (link := _link(inputs, lengths, each)))
    pairs = []
    for lower, _ in before.below:
        place = lower.chain.index(lower) + 1
        above = lower.chain[place] if place < len(lower.chain) else None
        link = _link(inputs, lengths, above) if above is not None and above in candidates else None
        if above is None or link is None:
            return None
        pairs.append((above, link))
    return tuple(pairs)


def _is_read(inputs: Tensor, strand: Strand) -> bool:
    """Whether inputs read a strand at all: a mask may keep all of it out."""
    (numbers,) = readers(inputs, [strand.states])
    return numbers is not None and bool((numbers >= 0).any())


def _link(inputs: Tensor, lengths: Tensor, strand: Strand) -> PositionMap | None:
    """Return how each position reads the same position of a strand; None if it does not."""
    if strand.states.shape[:2] != inputs.shape[:2] or not torch.equal(strand.lengths, lengths):
        return None
    (numbers,) = readers(inputs, [strand.states])
    if numbers is None or bool(((numbers >= 0) & (numbers != torch.arange(len(numbers), device="cpu"))).any()):
        return None
    return position_map(inputs, [strand.states], lambda gradients: gradients[0])
