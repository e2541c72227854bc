"""What reads places that the state changes: sums over all entries, each times whether it is the one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, place_rule
from unrolled.held_forward.increments.moving_places import MovingPlaces
from unrolled.held_forward.operations.operands import of_kind, operands
from unrolled.held_forward.rules.increment import scatter_operands
from unrolled.held_forward.tensor_facts.moves import MOVES

__all__: list[str] = []


@place_rule(*MOVES - {"gather", "index_select", "take", "take_along_dim", "getitem"}, "long")
def moved(call: IncrementCall) -> Any:
    """Move places, or copy them."""
    index, *rest = call.args
    if any(map(call.moves, operands(rest))) or index not in call.mode.places:
        raise UnsupportedOperationError(f"the state changes which entries {call.name} reads")
    known, mode = call.mode.places[index], call.mode

    def follow(start: Any, end: Any, taken: Any) -> Any:
        if isinstance(taken, tuple | list):
            return of_kind(taken, map(follow, start, end, taken))

        def one_hot_of_moved() -> Tensor:
            with mode:
                return known.one_hot.reshape(-1, known.size)[taken]

        found = mode.follow(end.clone(), start, end)
        mode.places[found] = MovingPlaces(one_hot_of_moved, known.size)
        return found

    return follow(*call.at_both(), call.run(torch.arange(index.numel(), device=index.device).view(index.shape), *rest))


def _one_hot(call: IncrementCall, index: Tensor, size: int) -> Tensor:
    """Return which of ``size`` entries each place is, in the mode; the places are among as many."""
    known = call.mode.places[index]
    block = known.one_hot
    if known.size < size:
        return torch.cat([block, block.new_zeros(*block.shape[:-1], size - known.size)], -1)
    if known.size > size and any(bool((each >= size).any()) for each in call.mode.point(index)):
        raise UnsupportedOperationError(f"{call.name} is given places of other entries, which has no rule")
    return block[..., :size]


def _read(call: IncrementCall, index: Tensor, entries: Tensor, results: tuple[Any, Any]) -> Tensor:
    """Read entries that stand along the last axis, behind the axes of the places and any others."""
    if not entries.is_floating_point():
        raise UnsupportedOperationError(f"{call.name} of whole numbers by places that the state changes has no rule")
    finite = [torch.isfinite(each) for each in call.mode.point(entries)]
    with call.mode:
        known = torch.where(finite[0] & finite[1], entries, 0.0)  # infinity times zero is no number
        chosen = _one_hot(call, index, entries.shape[-1])
        beside = [1] * (entries.dim() - chosen.dim())
        block = (chosen.reshape(*chosen.shape[:-1], *beside, chosen.shape[-1]) * known).sum(-1)
    return call.mode.follow(block, *results)


@place_rule("gather", "take_along_dim")
def gathered(call: IncrementCall) -> Tensor:
    """Read along an axis."""
    if call.name == "gather":
        x, dim, index = call.bind("input", "dim", "index")
    else:
        x, index, dim = call.bind("input", "indices", "dim")
    if not call.moves(index) or dim is None:
        raise UnsupportedOperationError(f"the state changes which entries {call.name} reads")
    axis = dim % index.dim()
    with call.mode:
        for other, size in enumerate(index.shape):
            x = x if other == axis or x.shape[other] == size else x.narrow(other, 0, size)
        entries = x.movedim(axis, -1).unsqueeze(axis)
    return _read(call, index, entries, call.at_both())


@place_rule("getitem")
def read(call: IncrementCall) -> Any:
    """Move places, or read by places that stand behind others, which do not move."""
    x, index = call.args
    if x in call.mode.places:
        return moved(call)
    *before, last = _tensors_of(call, index)
    shape = last.shape
    with call.mode:
        entries = x[tuple(before)] if before else x.expand(*shape, *x.shape)
        entries = entries.movedim(len(shape), -1)
    return _read(call, last, entries, call.at_both())


@place_rule("embedding")
def looked_up(call: IncrementCall) -> Tensor:
    """Read rows of a table."""
    index, table = call.bind("input", "weight")
    shape = call.mode.point(index)[1].shape
    with call.mode:
        entries = table.expand(*shape, *table.shape).movedim(len(shape), -1)
    return _read(call, index, entries, call.at_both())


@place_rule("one_hot")
def one_hot(call: IncrementCall) -> Tensor:
    """Give which entry each place is, as numbers."""
    index, count = call.bind("input", "num_classes")
    if count in (None, -1):
        count = call.mode.places[index].size
        if any(each.shape[-1] != count for each in call.at_both()):
            raise UnsupportedOperationError("the state changes how many classes one_hot finds; pass num_classes")
    with call.mode:
        return _one_hot(call, index, count) * 1


@place_rule("eq", "ne", "lt", "le", "gt", "ge")
def compared(call: IncrementCall) -> Tensor:
    """Compare every entry's number, and read the answer of the one."""
    a, b = call.args
    if call.moves(a) and call.moves(b):
        raise UnsupportedOperationError(f"{call.name} of two places that move has no rule for increments")
    index, other = (a, b) if call.moves(a) else (b, a)
    size = call.mode.places[index].size
    numbers = torch.arange(size, device=index.device)
    other = other.unsqueeze(-1) if isinstance(other, Tensor) else other
    answers = call.run(numbers, other) if index is a else call.run(other, numbers)
    with call.mode:
        return (_one_hot(call, index, size) * answers).sum(-1)


@place_rule("scatter")
def scattered(call: IncrementCall) -> Tensor:
    """Write over the entries at places."""
    x, dim, index, value = scatter_operands(call)
    axis = dim % x.dim()
    fits = all(
        whole == part for other, (whole, part) in enumerate(zip(x.shape, index.shape, strict=True)) if other != axis
    )
    fits &= not isinstance(value, Tensor) or value.shape == index.shape
    if not call.moves(index) or not fits:
        raise UnsupportedOperationError(f"the state changes which entries {call.name} writes")
    with call.mode:
        chosen = _one_hot(call, index, x.shape[axis]).movedim(axis, -2)
        there = chosen * (value.movedim(axis, -1).unsqueeze(-1) if isinstance(value, Tensor) else value)
        hits, written = (each.sum(-2).movedim(-1, axis) for each in (chosen, there))
        _refuse_repeated(call, hits)
        return x.clone() * (1 - hits) + written  # the step may write over x itself


@place_rule("index_put", "setitem")
def put(call: IncrementCall) -> Tensor:
    """Write by places that stand behind others, which do not move."""
    x, index, value, *adds = call.args
    *before, last = _tensors_of(call, index)
    if any(adds) or call.kwargs or x.dim() != len(before) + 1 or not x.is_floating_point():
        raise UnsupportedOperationError(f"the state changes which entries {call.name} writes")
    with call.mode:
        hits = _one_hot(call, last, x.shape[-1])
        there = hits * (value.unsqueeze(-1) if isinstance(value, Tensor) and value.dim() else value)
        if before:
            none = torch.zeros(x.shape, dtype=hits.dtype, device=hits.device)
            hits, there = (torch.index_put(none, tuple(before), each, accumulate=True) for each in (hits, there))
        else:
            hits, there = (each.reshape(-1, x.shape[-1]).sum(0) for each in (hits, there))
        _refuse_repeated(call, hits)
        return x.clone() * (1 - hits) + there  # the step may write over x itself


def _refuse_repeated(call: IncrementCall, hits: Tensor) -> None:
    """Refuse entries that are written more than once: one of the writes stays, not their sum."""
    if any(bool((each > 1).any()) for each in call.mode.point(hits)):
        raise UnsupportedOperationError(f"the state changes which entries {call.name} writes more than once")


def _tensors_of(call: IncrementCall, index: Any) -> Sequence[Tensor]:
    """Return the tensors of an index, in their common shape; the last one alone moves."""
    given = index if isinstance(index, tuple | list) else (index,)
    known = all(isinstance(each, Tensor) and each.dtype != torch.bool for each in given)
    if not known or any(map(call.moves, given[:-1])):
        raise UnsupportedOperationError(f"the state changes which entries {call.name} reads or writes")
    shape = torch.broadcast_shapes(*(each.shape for each in given))
    with call.mode:
        return [each if each.shape == shape else each.expand(shape) for each in given]
