"""Operations that add or join several operands: each keeps its value, and a constant among them becomes a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries, of_kind, operands
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.results_in_place import parts_refused
from unrolled.held_forward.tensor_facts.moves import JOINS
from unrolled.held_forward.token_ids.written_positions import WRITES

__all__ = ["held_outside", "where_operands"]


def _with_rows(call: HeldCall, values: Any, like: Tensor) -> Any:
    """Turn every number and every tensor without value among the summands into rows."""
    if isinstance(values, tuple | list):
        return of_kind(values, (_with_rows(call, each, like) for each in values))
    if isinstance(values, bool | int | float | complex):
        return call.rows.constant(torch.full_like(like.detach(), values)) if values else values
    if isinstance(values, Tensor) and not carries(values):
        return call.rows.constant(_numbers(call, values, like))
    return values


def _numbers(call: HeldCall, values: Tensor, like: Tensor) -> Tensor:
    """Return integers or masks as the numbers that they are among value, and numbers in its type if that is finer."""
    own, real = values.dtype, like.dtype.to_real()
    dtype = torch.promote_types(own, real) if own.is_floating_point or own.is_complex else like.dtype
    if dtype == own:
        return values
    numbers = values.to(dtype)  # the gradient of a row has its type
    call.rows.mark(numbers, *call.rows.origin(values))
    return numbers


@rule("add", "sub")
def add(call: HeldCall) -> Tensor:
    """Compute a ± s b: what carries no value becomes a row in the shape of the result."""
    a, b, scale = call.bind("input", "other", "alpha")
    minus, scale = call.name == "sub", 1 if scale is None else scale
    if carries(a) and carries(b):
        return torch.sub(a, b, alpha=scale) if minus else torch.add(a, b, alpha=scale)
    like, other = (a, b) if carries(a) else (b, a)
    shape = torch.broadcast_shapes(like.shape, other.shape) if isinstance(other, Tensor) else like.shape
    dtype = torch.result_type(a, b)  # a constant may be finer than the value, or complex

    def term(each: Any) -> Any:
        if carries(each):
            return each.to(dtype)
        if isinstance(each, int | float) and not each:
            return 0.0
        wide = torch.as_tensor(each, dtype=dtype, device=like.device).to_dense()
        if not bool(wide.count_nonzero()):
            return 0.0
        origin = call.rows.origin(each if isinstance(each, Tensor) else wide)
        return call.rows.summand(origin, wide, shape)

    def combined(first: Any, second: Any) -> Any:
        second = second if scale == 1 else scale * second
        return first - second if minus else first + second

    result = combined(term(a), term(b))
    result = result if result.shape == shape else result.expand(shape)
    return call.gates.keep_sum(result, (a, b), lambda parts: combined(*parts).expand(shape))


@rule("complex")
def complex_number(call: HeldCall) -> Tensor:
    """Compute a + ib, whose entries are of two operands each, as those of a sum are."""
    parts = call.bind("real", "imag")
    like = next(each for each in parts if carries(each))
    return call.gates.keep_sum(call.function(*_with_rows(call, parts, like)), parts, lambda each: call.function(*each))


@rule(*JOINS, "block_diag")
def join(call: HeldCall) -> Tensor:
    """Join tensors; those without value become rows."""
    separate = isinstance(call.args[0], Tensor) if call.args else False  # one after another, not in a list
    parts = call.args if separate else call.bind("tensors")[0]
    options = call.options_beyond("tensors")

    def joined(given: Any) -> Tensor:
        result: Tensor = call.function(*given) if separate else call.function(given, *call.args[1:], **options)
        return result

    like = next(each for each in operands(parts) if carries(each))
    return call.gates.keep_chosen(joined(_with_rows(call, parts, like)), parts, joined)


@rule("diff")
def diff(call: HeldCall) -> Tensor:
    """Subtract neighbours; what is put before or after them carries value or becomes a row."""
    x, times, dim, before, after = call.bind("input", "n", "dim", "prepend", "append")
    dim, parts = -1 if dim is None else dim, [each for each in (before, x, after) if each is not None]
    with call.mode:
        whole = torch.cat(parts, dim)
    return torch.diff(whole, 1 if times is None else times, dim)


@rule("pad_sequence")
def pad_sequence(call: HeldCall) -> Tensor:
    """Pad several sequences to one length; a padding value other than zero is a constant."""
    sequences, batch_first, padding, side = call.bind("sequences", "batch_first", "padding_value", "padding_side")
    like = next(each for each in sequences if carries(each) or each.is_floating_point())  # the first has torch's type
    end = () if side is None else (side,)  # torch 2.4 takes no side

    def padded(parts: Sequence[Tensor], number: float) -> Tensor:
        result: Tensor = call.function(list(parts), bool(batch_first), number, *end)
        return result

    result = padded(_with_rows(call, list(sequences), like), 0.0)
    if padding:
        result = result + call.rows.constant(padded([torch.zeros_like(each.detach()) for each in sequences], padding))
    return call.gates.keep_chosen(result, (*sequences, padding or 0.0), lambda parts: padded(parts[:-1], parts[-1]))


def where_operands(call: OperationCall) -> list[Any]:
    """Give condition, a and b of ``torch.where(condition, a, b)`` or of ``a.where(condition, b)``."""
    if call.function is Tensor.where:
        a, condition, b = call.bind("input", "condition", "other")
        return [condition, a, b]
    return call.bind("condition", "input", "other")


@rule("where")
def where(call: HeldCall) -> Tensor:
    """Choose between two operands; the choice is held."""
    condition, a, b = where_operands(call)
    like, held = a if carries(a) else b, condition.detach()
    dtype = torch.result_type(a, b)

    def term(each: Any) -> Any:
        rows = _with_rows(call, each, like.to(dtype))
        return rows.to(dtype) if isinstance(rows, Tensor) else rows  # of a real and a complex one torch has no gradient

    result = torch.where(held, term(a), term(b))
    return call.gates.keep_chosen(result, (a, b), lambda parts: torch.where(held, parts[0], parts[1]))


@rule("masked_fill")
def masked_fill(call: HeldCall) -> Tensor:
    """Replace some entries by a number, which becomes a row or carries value itself."""
    x, mask, value = call.bind("input", "mask", "value")
    if carries(value):
        with call.mode:
            return torch.where(mask, value, x)
    result = x.masked_fill(mask, 0.0)
    if number := float(value):
        result = result + call.rows.constant(torch.zeros_like(x.detach()).masked_fill(mask, number))
    return call.gates.keep_chosen(result, (x, number), lambda parts: torch.where(mask, parts[1], parts[0]))


@rule("fill", "zero")
def fill(call: HeldCall) -> Tensor:
    """Replace all entries by a number, which becomes a row or carries value itself."""
    x, value = call.bind("input", "value")
    if isinstance(value, Tensor):
        return _with_rows(call, value, x).to(x.dtype).expand_as(x)
    return call.rows.constant(torch.full_like(x.detach(), value or 0.0))


@rule("nan_to_num")
def nan_to_num(call: HeldCall) -> Tensor:
    """Replace what is not finite by numbers, which become a row."""
    x = call.args[0]
    return held_outside(call, x, x.detach().isfinite(), call.held())


def held_outside(call: HeldCall, x: Tensor, inside: Tensor, held: Tensor) -> Tensor:
    """Keep the entries of x that are inside; in place of the others stand those of a held tensor, which are a row."""
    outside = held.masked_fill(inside, 0.0)
    result = x.masked_fill(~inside, 0.0) + call.rows.constant(outside)  # a product with infinity would not be zero
    return call.gates.keep_chosen(result, (x, outside), lambda parts: torch.where(inside, parts[0], parts[1]))


@rule("setitem")
def setitem(call: HeldCall) -> None:
    """Write into a tensor: what it held, and what is written, carry value or become rows."""
    x, index, value = call.args
    before = call.gates.copy(x) if call.gates.of(x) or call.gates.of(value) else None
    if not carries(x) and bool(x.count_nonzero()):
        x.copy_(call.rows.constant(x))
    with parts_refused("setitem"):
        x[index] = _with_rows(call, value, x) if isinstance(value, Tensor) else value
    if isinstance(value, int | float) and value:
        inside = torch.zeros_like(x.detach())
        inside[index] = value
        x[index] = 0.0
        x.add_(call.rows.constant(inside))
    if before is not None:
        call.gates.keep_chosen(x, (before, value), lambda parts: _written(parts[0], index, parts[1]))


def _written(whole: Tensor, index: Any, part: Any) -> Tensor:
    result = whole.clone()
    result[index] = part
    return result


@rule("copy")
def copy(call: HeldCall) -> Tensor:
    """Take another tensor's value, in the shape and type of the first."""
    x, source = call.args[0], _with_rows(call, call.args[1], call.args[0])
    with call.mode:
        return source.to(x.dtype).expand_as(x)


@rule(*WRITES.keys() - {"scatter"}, "scatter_add", "index_add")
def write(call: HeldCall) -> Tensor:
    """Write or add at some places; the places are held."""
    if call.name in ("scatter", "scatter_add", "scatter_reduce"):
        call = _without_unread(call)
    like = next(each for each in operands(call.args) if carries(each))
    floating = [
        _with_rows(call, each, like) if isinstance(each, Tensor) and each.is_floating_point() else each
        for each in call.args
    ]
    result = call.run(*floating)
    if call.name not in WRITES or any(each is True for each in (*call.args, *call.kwargs.values())):  # accumulate
        return result
    places = [place for place, each in enumerate(call.args) if isinstance(each, Tensor) and each.is_floating_point()]

    def chosen(parts: list[Any]) -> Tensor:
        given = dict(zip(places, parts, strict=True))
        return call.run(*(given.get(place, each) for place, each in enumerate(call.args)))

    return call.gates.keep_chosen(result, [call.args[place] for place in places], chosen)


def _without_unread(call: HeldCall) -> HeldCall:
    """Leave out what a scatter reads no number of: torch differentiates none that is larger than its index."""
    x, dim, index, source, *others = call.args
    if not isinstance(source, Tensor) or source.dim() != index.dim():
        return call
    with call.mode:
        read = source[tuple(map(slice, index.shape))]
    return replace(call, args=(x, dim, index, read, *others))


@rule("index_fill", "scatter")
def write_number(call: HeldCall) -> Tensor:
    """Write a number at some places, which becomes a row, or a tensor."""
    x, dim, index, number = call.bind("input", "dim", "index", "value")
    if call.kwargs.get("reduce"):
        raise UnsupportedOperationError(
            "the model calls scatter with reduce=, which autograd does not follow; use scatter_add or scatter_reduce"
        )
    if not isinstance(number, int | float):
        return write(call)
    written = call.function(torch.zeros_like(x.detach()), dim, index, number)
    result = call.function(x, dim, index, 0.0) + call.rows.constant(written)
    return call.gates.keep_chosen(result, (x, number), lambda parts: call.function(parts[0], dim, index, parts[1]))


@rule("scatter_reduce", "index_reduce")
def reduce_to(call: HeldCall) -> Tensor:
    """Sum, average or choose among the entries for each place; the choice is held."""
    how = next(each for each in (*call.args, *call.kwargs.values()) if isinstance(each, str))
    if how == "prod":
        raise UnsupportedOperationError(f"{call.name} with 'prod' has no rule; expected sum, mean, amax or amin")
    return write(call)  # autograd holds the choice
