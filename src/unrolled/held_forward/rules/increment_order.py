"""Entries chosen by their order, on blocks of increments: along the line they pass each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.increments.moving_places import MovingPlaces
from unrolled.held_forward.increments.order_on_a_line import OrderOnALine, one_hot, ranks_beside

__all__ = ["follow_extreme_place"]

_LARGEST = 2**22
"""Pairs of entries, over all increments, above which an order is refused: each pair is a number in memory."""


@increment_rule("topk")
def largest(call: IncrementCall) -> Any:
    """Choose the k largest or smallest."""
    z, k, dim, of_largest = call.bind("input", "k", "dim", "largest")
    first = -1 if of_largest in (None, True) else 0
    return _by_order(call, z, _axis(z, dim), [first - place if first else place for place in range(k)])


@increment_rule("sort")
def in_order(call: IncrementCall) -> Any:
    """Sort along an axis."""
    z, dim, descending = call.bind("input", "dim", "descending")
    dim = _axis(z, dim)
    return _by_order(call, z, dim, _all_ranks(z, dim, descending))


@increment_rule("argsort")
def places_in_order(call: IncrementCall) -> Tensor:
    """Give the places of the entries in order."""
    z, dim, descending = call.bind("input", "dim", "descending")
    dim = _axis(z, dim)
    return _Choice(call, z, dim, _all_ranks(z, dim, descending), call.at_both(), True).followed()


def _axis(z: Tensor, dim: int | None) -> int:
    """Return the axis along which entries have an order, the last one by default."""
    if not z.dim():
        raise UnsupportedOperationError("the order of a number without axes has no rule for increments")
    return -1 if dim is None else dim


def _all_ranks(z: Tensor, dim: int, descending: Any) -> list[int]:
    ranks = list(range(z.shape[dim]))
    return ranks[::-1] if descending else ranks


@increment_rule("msort")
def in_order_along_the_first(call: IncrementCall) -> Tensor:
    """Sort along the first axis."""
    with call.mode:
        return torch.sort(call.args[0], dim=0)[0]


@increment_rule("kthvalue")
def smallest_but_few(call: IncrementCall) -> Any:
    """Choose the k-th smallest."""
    z, k, dim, keep = call.bind("input", "k", "dim", "keepdim")
    return _by_order(call, z, _axis(z, dim), [k - 1], bool(keep))


@increment_rule("median", "nanmedian")
def middle(call: IncrementCall) -> Any:
    """Choose the lower one of the entries in the middle."""
    z, dim, keep = call.bind("input", "dim", "keepdim")
    if call.name == "nanmedian" and any(bool(each.isnan().any()) for each in call.mode.point(z)):
        raise UnsupportedOperationError("nanmedian of entries that are no numbers has no rule for increments")
    if dim is None:
        with call.mode:
            return call.run(z.reshape(-1), 0)[0]
    return _by_order(call, z, _axis(z, dim), [(z.shape[dim] - 1) // 2], bool(keep))


@increment_rule("argmax", "argmin")
def place_of_extreme(call: IncrementCall) -> Tensor:
    """Give the place of the largest or smallest entry."""
    z, dim, keep = call.bind("input", "dim", "keepdim")
    if dim is None:
        shape = call.at_both()[1].shape
        with call.mode:
            flat = z.reshape(-1)
            return (flat.argmax(0) if call.name == "argmax" else flat.argmin(0)).reshape(shape)
    return follow_extreme_place(call, z, dim, bool(keep), call.at_both())


@increment_rule("cummax", "cummin")
def running_extreme(call: IncrementCall) -> Any:
    """Compute the largest or smallest of the first entries, of ever more of them."""
    z, dim = call.args[0], _axis(*call.args)
    before, after = call.at_both()
    reduce = torch.amax if call.name == "cummax" else torch.amin
    with call.mode:
        longer = (z.narrow(dim, 0, k + 1) for k in range(z.shape[dim]))
        values = torch.cat([z.narrow(dim, 0, 0), *(reduce(each, dim, keepdim=True) for each in longer)], dim)
    place = after[1]
    if not call.mode.holds("argmax") and not torch.equal(before[1], place):
        place = call.mode.follow(place.clone(), before[1], place)
    return type(after)((values, place))


@increment_rule("aminmax")
def both_extremes(call: IncrementCall) -> Any:
    """Choose the smallest and the largest."""
    (z,), dim, keep = call.args, call.kwargs.get("dim"), bool(call.kwargs.get("keepdim"))
    with call.mode:
        pair = z.amin(dim, keepdim=keep), z.amax(dim, keepdim=keep)
    return type(call.at_both()[1])(pair)


def follow_extreme_place(call: IncrementCall, z: Tensor, dim: int, keep: bool, places: tuple[Tensor, Tensor]) -> Tensor:
    """Give the place of the largest or smallest entry, which the state may change."""
    return _Choice(call, z, dim, [-1 if "max" in call.name else 0], places, keep).followed()


def _by_order(call: IncrementCall, z: Tensor, dim: int, ranks: Sequence[int], keep: bool = True) -> Any:
    """Choose entries by their ranks, of which the smallest is zero; give them and their places."""
    before, after = call.at_both()
    index = after[1] if keep else after[1].unsqueeze(dim)

    def chosen(entries: Tensor) -> Tensor:
        found = entries.gather(dim, index)
        return found if keep else found.squeeze(dim)

    if call.mode.holds("argsort"):
        block, start, place = chosen(z), chosen(call.mode.point(z)[0]), call.mode.of_numbers(after[1])
    else:
        choice = _Choice(call, z, dim, ranks, (before[1], after[1]), keep)
        mean = choice.order.mean_order()[..., ranks, :]
        block = (mean * z.movedim(dim, -1)[..., None, :]).sum(-1).movedim(-1, dim)
        block, start, place = block if keep else block.squeeze(dim), before[0], choice.followed()
    result = call.mode.keep_gate(call.mode.follow(block, start, after[0]), (z,), chosen)
    return type(after)((result, place))


@dataclass(frozen=True)
class _Choice:
    """Entries of some ranks along an axis, which the state may change."""

    call: IncrementCall
    z: Tensor
    dim: int
    ranks: Sequence[int]
    places: tuple[Tensor, Tensor]
    """Without and with the state."""
    keep: bool
    """Whether the axis is kept."""

    @cached_property
    def order(self) -> OrderOnALine:
        """Which entries pass each other; the axis is the last one."""
        size = self.z.shape[self.dim]
        if self.z.numel() * size > _LARGEST:
            raise UnsupportedOperationError(f"the order of {size} entries has too many pairs for a rule of increments")
        points = [each.movedim(self.dim, -1) for each in self.call.mode.point(self.z)]
        wide = [each if self.keep else each.unsqueeze(self.dim) for each in self.places]
        known = [rank % self.z.shape[self.dim] for rank in self.ranks]
        start, end = [(point, known, index.movedim(self.dim, -1)) for point, index in zip(points, wide, strict=True)]
        after = ranks_beside(*end, ranks_beside(*start))
        return OrderOnALine.of(points[0], points[1], ranks_beside(*start, after), after)

    def followed(self) -> Tensor:
        """Return the places, and let them move where the state changes them."""
        mode, (before, after) = self.call.mode, self.places
        if torch.equal(before, after):
            return mode.of_numbers(after)
        result = mode.follow(after.clone(), before, after)
        mode.places[result] = MovingPlaces(self._one_hot, self.z.shape[self.dim])
        return result

    def _one_hot(self) -> Tensor:
        order, axis = self.order, self.dim % self.z.dim()
        block = order.increments(self.z.movedim(self.dim, -1))
        parts = [block, *(one_hot(rank, order.rise) for rank in (order.before, order.after))]
        slots = [each[..., self.ranks, :].movedim(-2, axis) for each in parts]
        return self.call.mode.follow(*(each if self.keep else each.squeeze(axis) for each in slots))
