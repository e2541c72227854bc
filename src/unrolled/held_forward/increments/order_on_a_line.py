r"""The order of entries along a line: where two of them pass each other, they change places.

Between a start and an end entry i lies on the line z_i(α) = s_i + α (e_i - s_i). The entry at rank r is
Σ_i O_ri(α) z_i(α), where O is a permutation, which changes only where two entries are equal. So the increase of the
entry at rank r is Σ_i (∫ O_ri dα)(e_i - s_i), and O(1) - O(0) is the sum of the exchanges of pairs. An exchange of i
and j owes its increments to those of z_i - z_j, as a comparison does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError

__all__ = ["OrderOnALine", "one_hot", "ranks_beside"]


@dataclass(frozen=True)
class OrderOnALine:
    """The ranks of entries, shape (…, n), from start to end; in tensors of shape (…, n, n) entry i passes entry j."""

    before: Tensor
    after: Tensor
    passes: Tensor
    rise: Tensor
    """How much further j has come than i at the end; one where they do not pass each other."""
    time: Tensor
    """α where they are equal."""
    sequence: Tensor
    """For each i, the entries j by the time at which they pass."""

    @classmethod
    def of(cls, start: Tensor, end: Tensor, before: Tensor, after: Tensor) -> OrderOnALine:
        """Find which entries pass each other; the smallest has rank zero.

        Raises:
            UnsupportedOperationError: If entries change places that do not move against each other.
        """

        def apart(values: Tensor) -> Tensor:
            return values[..., None, :] - values[..., None]

        passes = (apart(before) > 0) != (apart(after) > 0)
        ahead = apart(start)
        rise = apart(end) - ahead
        if bool((passes & ~(torch.isfinite(rise) & (rise != 0))).any()):
            raise UnsupportedOperationError("the state changes the order of entries that are equal or infinite")
        rise = torch.where(passes, rise, 1.0)
        time = torch.where(passes, (-ahead / rise).clamp(0.0, 1.0), 2.0)
        # of those that pass at one time, as all do where the state is empty and all are equal, the order decides
        slack = torch.lerp(apart(before).to(rise), apart(after).to(rise), time.clamp(max=1.0)) / -rise
        sequence = slack.argsort(-1)
        sequence = sequence.gather(-1, time.gather(-1, sequence).argsort(dim=-1, stable=True))
        return cls(before, after, passes, rise, time, sequence)

    def exchanges(self, weights: Tensor) -> Tensor:
        """Sum up how O changes, (…, rank, entry), each exchange of i and j by its weight (…, i, j)."""
        falls = (self.after[..., None, :] < self.after[..., None]).int() - (
            self.before[..., None, :] < self.before[..., None]
        ).int()
        steps = falls.gather(-1, self.sequence)
        rank = self.before[..., None] + steps.cumsum(-1)
        weights = torch.where(self.passes, weights, 0.0).gather(-1, self.sequence)
        shape = torch.broadcast_shapes(rank.shape, weights.shape)
        found = weights.new_zeros(shape).scatter_add(-1, rank.expand(shape), weights.expand(shape))
        return found.scatter_add(-1, (rank - steps).expand(shape), -weights).transpose(-1, -2)

    def mean_order(self) -> Tensor:
        """Compute ∫ O dα, shape (…, rank, entry): for which part of the line an entry has a rank."""
        return one_hot(self.after, self.rise) - self.exchanges(self.time)

    def increments(self, block: Tensor) -> Tensor:
        """Compute the increments of O for increments of the entries, shape (…, n)."""
        return self.exchanges((block[..., None, :] - block[..., None]) / self.rise)


def one_hot(ranks: Tensor, like: Tensor) -> Tensor:
    """Return the permutation (…, rank, entry) of ranks of entries."""
    return (ranks[..., None, :] == torch.arange(ranks.shape[-1], device=ranks.device)[:, None]).to(like)


def ranks_beside(values: Tensor, known: Sequence[int], entries: Tensor, other_end: Tensor | None = None) -> Tensor:
    """Return the ranks of entries by their values; at known ranks stand given entries.

    Among equal ones the ranks at the other end of the line decide, so that those equal at both do not change places.
    """
    size = values.shape[-1]
    order = torch.arange(size, device=values.device).expand_as(values) if other_end is None else other_end.argsort(-1)
    order = order.gather(-1, values.gather(-1, order).argsort(dim=-1, stable=True))
    is_known = torch.zeros_like(order, dtype=torch.bool).scatter(-1, entries, True)
    others = order[~is_known.gather(-1, order)].view(*order.shape[:-1], size - len(known))
    ranks = torch.tensor(
        [*known, *(rank for rank in range(size) if rank not in known)], dtype=torch.int64, device=order.device
    )
    return torch.empty_like(order).scatter_(-1, torch.cat([entries, others], -1), ranks.expand_as(order))
