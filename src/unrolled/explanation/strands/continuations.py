r"""How the initial state of a call follows from earlier calls of its network: chains of strands.

The initial state q of a strand continues, sequence by sequence, the latest strand of a chain that holds the sequence:

.. math:: q' = J s + K ⊙ q + …

with s the last state of that strand, q its initial state, and J a position-wise map. K is zero where a state is carried
on as it is. Behind a mask it is one where the mask keeps the old state; it is one in a residual loop and the kept part
in a leaky one. Other summands of an initial state, such as a context of attention over earlier states, do not belong to
the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.explanation.strands.strand import Strand, strands_read
from unrolled.held_forward.recorded_maps import PositionMap, SelectionMap, image, position_map, random_like, readers

__all__ = ["Continuation", "find_continuation"]

_ROUNDINGS = 1000
"""How many roundings the factor of a mixture may be off, which is a quotient of sums over all states of a chain."""
Followed = tuple[tuple[Strand, Tensor, Tensor], ...]


@dataclass(frozen=True)
class Continuation:
    """How an initial state continues a chain."""

    chain: list[Strand]
    rows: Tensor
    """Which sequences of the chain it continues; sequences that begin here have new numbers."""
    continued: Followed
    join: PositionMap | None
    bypass: Tensor | None

    @property
    def before(self) -> Strand:
        """The last strand of the chain."""
        return self.chain[-1]

    def append(self, strand: Strand) -> None:
        """Let a strand be the next one of the chain."""
        strand.before, strand.continued, strand.rows = self.before, self.continued, self.rows
        strand.join, strand.bypass = self.join, self.bypass
        strand.chain = self.chain
        self.chain.append(strand)


def find_continuation(start: Tensor, network: str, strands: Sequence[Strand]) -> Continuation | None:
    """Find the chain that an initial state, shape (batch, state), continues.

    It is of the same network, with one direction. Of its strands, last states only are read, one by each sequence of a
    strand and each by one sequence.
    """
    own = [each for each in strands_read(start, strands) if each.network == network]
    tried: set[int] = set()
    for strand in reversed(own):
        if strand.both or id(strand.chain) in tried or strand.states.shape[-1] != start.shape[-1]:
            continue
        tried.add(id(strand.chain))
        found = _continuation(start, strand.chain, own)
        if found is not None:
            return found
    return None


def _continuation(start: Tensor, chain: list[Strand], own: Sequence[Strand]) -> Continuation | None:
    """Continue a chain; None if the initial state reads it in any other way."""
    read = [each for each in own if each.chain is chain]
    numbered = _rows(start, read)
    if numbered is None:
        return None
    rows, readers_of = numbered
    fresh = rows < 0
    if bool(fresh.any()):
        others = [each.states for each in own if each.chain is not chain]
        if bool(image(start, others, [torch.ones_like(each) for each in others])[fresh].any()):
            return None
        first = chain[0].sequences_of_chain
        rows = rows.clone()
        rows[fresh] = torch.arange(first, first + int(fresh.sum()), device="cpu")
    continued = _latest(chain, rows)
    states = [strand.states for strand, _, _ in continued]

    def align(gradients: Sequence[Tensor]) -> Tensor:
        aligned = gradients[0].new_zeros(len(start), gradients[0].shape[-1])
        for gradient, (strand, theirs, mine) in zip(gradients, continued, strict=True):
            aligned[mine] = gradient[strand.lengths[theirs] - 1, theirs]
        return aligned

    latest = {strand: set(mine.tolist()) for strand, _, mine in continued}
    bypass: Tensor | None = None
    if any(
        set(mine[mine >= 0].tolist()) - latest.get(each, set()) for each, mine in zip(read, readers_of, strict=True)
    ):
        bypass = _bypass(start, chain, continued)
        if bypass is None and (bool(fresh.any()) or states[0] is not chain[-1].states or len(states) > 1):
            return None
    join = position_map(start, states, align)
    return Continuation(chain, rows, continued, None if _is_identity(join) else join, bypass)


def _rows(start: Tensor, read: Sequence[Strand]) -> tuple[Tensor, list[Tensor]] | None:
    """Find which sequences of a chain an initial state continues, -1 for none, and what reads each of their states."""
    rows, found = torch.full((len(start),), -1, dtype=torch.int64, device="cpu"), []
    for strand, numbers in zip(read, readers(start, [each.states for each in read]), strict=True):
        if numbers is None:
            return None
        time, batch, _ = strand.states.shape
        at_end = numbers.reshape(time, batch)[strand.lengths - 1, torch.arange(batch, device="cpu")].cpu()
        if int((at_end >= 0).sum()) != int((numbers >= 0).sum()):
            return None
        theirs = (at_end >= 0).nonzero()[:, 0]
        mine, numbered = at_end[theirs], strand.rows[theirs]
        if bool(((rows[mine] >= 0) & (rows[mine] != numbered)).any()):
            return None
        rows[mine] = numbered
        found.append(at_end)
    known = rows[rows >= 0]
    return (rows, found) if len(known) and len(known.unique()) == len(known) else None


def _latest(chain: Sequence[Strand], rows: Tensor) -> Followed:
    """Find the latest strand of each sequence: which of that strand's sequences, and which of ours."""
    open_ones, found = {int(row): place for place, row in enumerate(rows)}, []
    for strand in reversed(chain):
        pairs = [(place, open_ones.pop(row)) for place, row in enumerate(strand.rows.tolist()) if row in open_ones]
        if pairs:
            theirs, mine = torch.tensor(pairs, dtype=torch.int64, device="cpu").T
            found.append((strand, theirs, mine))
    return tuple(found)


def _bypass(start: Tensor, chain: Sequence[Strand], continued: Followed) -> Tensor | None:
    """Find K, shape (batch, state); None if the initial state is no such mixture."""
    # The earlier states of the chain make a part of the initial state before, and K times that of this one. Random
    # values of these states are tried twice: K must be the same.
    ratio: Tensor | None = None
    for trial in range(2):
        values = [random_like(each.states, 2 * place + trial) for place, each in enumerate(chain)]
        before = torch.zeros_like(start)
        for strand, theirs, mine in continued:
            earlier = chain[: chain.index(strand)]
            made = image(strand.start, [each.states for each in earlier], values[: len(earlier)])
            before[mine] = made[theirs]
        for strand, theirs, _ in continued:
            values[chain.index(strand)][strand.lengths[theirs] - 1, theirs] = 0.0
        after = image(start, [each.states for each in chain], values)
        rounding = _ROUNDINGS * torch.finfo(start.dtype).eps
        if ratio is None:
            ratio = torch.where(before != 0, after / torch.where(before != 0, before, 1.0), 0.0)
            whole = ratio.round()
            ratio = torch.where((ratio - whole).abs() <= rounding, whole, ratio)
        if not float((after - ratio * before).abs().max()) <= rounding * float(after.abs().max()):
            return None
    return ratio


def _is_identity(found: PositionMap) -> bool:
    if not isinstance(found, SelectionMap) or len(found.index) != found.size:
        return False
    return torch.equal(found.index, torch.arange(found.size, device="cpu")) and bool((found.weight == 1).all())
