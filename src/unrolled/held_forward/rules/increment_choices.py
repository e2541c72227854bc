"""Choices and steps that jump, on blocks of increments: between their two answers lies a line as well."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.held_forward.operations.operation_call import axes_of
from unrolled.held_forward.rules.additive import where_operands
from unrolled.held_forward.rules.held import between, clamp_operands
from unrolled.held_forward.rules.increment import activation, linear_in_all
from unrolled.held_forward.rules.increment_order import follow_extreme_place

__all__: list[str] = []


@increment_rule("gt", "lt", "ge", "le", "eq", "ne")
def comparison(call: IncrementCall) -> Tensor:
    """Answer by the end; where the state changes the answer, it is the number 0 or 1, which jumps with a - b."""
    base, end = call.at_both()
    if torch.equal(base, end):
        return call.mode.of_numbers(end)
    a, b = call.args
    with call.mode:
        apart = (a - b).expand(end.shape)
    return _jump(call, apart, base.to(apart.dtype), end.to(apart.dtype))


def _jump(call: IncrementCall, z: Tensor, base: Tensor, end: Tensor) -> Tensor:
    """Multiply the increments of z by the slope of the line between two values, however near they are."""
    before, after = call.mode.point(z)
    still = base == end
    slope = (end - base).masked_fill(still, 0.0) / (after - before).masked_fill(still, 1.0)
    return call.mode.follow(slope * z, base, end)


@increment_rule("isnan", "isinf", "isfinite")
def answer(call: IncrementCall) -> Tensor:
    """Answer by the end, where the state does not change the answer."""
    base, end = call.at_both()
    if not torch.equal(base, end):
        raise UnsupportedOperationError(f"the state changes what {call.name} answers")
    return call.mode.of_numbers(end)


@increment_rule("floor", "ceil", "round", "trunc", "sign")
def rounded(call: IncrementCall) -> Tensor:
    """Multiply by the slope of the line from the base to the end."""
    return _jump(call, call.args[0], *call.at_both())


@increment_rule("heaviside")
def heaviside(call: IncrementCall) -> Tensor:
    """Multiply by the slope of the line from the base to the end; what it is at zero may not move."""
    z, at_zero = call.args
    if call.moves(at_zero):
        raise UnsupportedOperationError("the state changes what heaviside is at zero")
    return _jump(call, z, *call.at_both())


@increment_rule("floor_divide")
def whole_quotient(call: IncrementCall) -> Tensor:
    """Compute the floor of a / b."""
    a, b = call.args
    with call.mode:
        return torch.floor(a / b)


@increment_rule("remainder", "fmod")
def remainder(call: IncrementCall) -> Tensor:
    """Compute a - b q, of which q is the quotient without its fraction."""
    a, b = call.args
    with call.mode:
        whole = torch.floor(a / b) if call.name == "remainder" else torch.trunc(a / b)
        return a - b * whole


@increment_rule("long", "int", "short")
def whole_number(call: IncrementCall) -> Tensor:
    """Leave out the fraction, which an answer does not have; the numbers stay floating-point ones."""
    with call.mode:
        whole = torch.trunc(call.args[0])
    call.mode.integers[whole] = True
    return whole


@increment_rule("bool")
def is_not_zero(call: IncrementCall) -> Tensor:
    """Compare with zero."""
    with call.mode:
        return call.args[0] != 0


@increment_rule("to", "type", "type_as")
def converted(call: IncrementCall) -> Any:
    """Convert entries to another type, which may have whole numbers or answers only."""
    if call.moves(call.args[0]):
        of_type = call.run(*call.mode.at(1, call.args))
        if isinstance(of_type, Tensor) and of_type.dtype == torch.bool:
            return is_not_zero(call)
        if isinstance(of_type, Tensor) and not holds_numbers(of_type):
            return whole_number(call)
    return linear_in_all(call)


@increment_rule("logical_not", "bitwise_not", "invert")
def negation(call: IncrementCall) -> Tensor:
    """Compute 1 - a of an answer that moves."""
    if call.args[0] in call.mode.integers and call.name != "logical_not":
        raise UnsupportedOperationError(f"the state changes the bits that {call.name} reads")
    return _of_answers(call, lambda a: 1 - a)


@increment_rule(*(kind + name for kind in ("logical_", "bitwise_", "") for name in ("and", "or", "xor")))
def joined_answers(call: IncrementCall) -> Tensor:
    """Compute a b, a + b - a b, or a + b - 2 a b, of answers of which one moves."""
    if call.name.endswith("and"):
        return _of_answers(call, lambda a, b: a * b)
    both = 2 if call.name.endswith("xor") else 1
    return _of_answers(call, lambda a, b: a + b - both * (a * b))


def _of_answers(call: IncrementCall, compute: Callable[..., Tensor]) -> Tensor:
    """Compute a function of answers, each 1 for what is not zero; an answer that moves is such a number already."""
    if not call.name.startswith("logical_") and any(map(partial(_has_bits, call), call.args)):
        raise UnsupportedOperationError(f"the state changes the bits that {call.name} reads")
    with call.mode:
        answers = [each != 0 if isinstance(each, Tensor) else bool(each) for each in call.args]
        like = next(each for each in call.args if call.moves(each))
        moves = any(map(call.moves, answers))
        result = compute(
            *(
                each if call.moves(each) else torch.as_tensor(each, dtype=like.dtype, device=like.device)
                for each in answers
            )
        )
        return result if moves else call.mode.of_numbers(result != 0)


def _has_bits(call: IncrementCall, value: Any) -> bool:
    """Whether a number that moves is anything but 0 and 1."""
    return call.moves(value) and any(bool((each != (each != 0)).any()) for each in call.mode.point(value))


@increment_rule("where", "masked_fill")
def selected(call: IncrementCall) -> Tensor:
    """Select among increments; a constant that is selected has none. A choice that moves is a factor of a - b."""
    if call.name == "where":
        condition, a, b = where_operands(call)
    else:
        b, condition, a = call.bind("input", "mask", "value")
    if call.moves(condition):
        return _by_answers(call, condition, a, b)

    def increments(value: Any) -> Any:
        return value if call.moves(value) else 0.0

    def choose(*pair: Any) -> Any:
        return torch.where(condition, *pair)

    block = choose(increments(a), increments(b))
    base, end = (choose(*call.mode.at(place, (a, b))) for place in (0, 1))
    return call.mode.keep_gate(call.mode.follow(block.to(end.dtype), base, end), call.args, call.run)


def _by_answers(call: IncrementCall, condition: Tensor, a: Any, b: Any) -> Tensor:
    """Compute b + m (a - b), where the state changes m; if one of both is no number, all is due to m."""
    mode, (before, after) = call.mode, call.mode.point(condition)
    (a0, a1), (b0, b1) = mode.point(a), mode.point(b)
    start: Tensor = torch.where(before != 0, a0, b0)
    end: Tensor = torch.where(after != 0, a1, b1)
    known = torch.isfinite((a0 + a1) + (b0 + b1) + torch.zeros_like(end))
    with mode:
        chosen = torch.where(after != 0, a, b)
        a, b = (torch.where(known, each, 0.0) for each in (a, b))
        both = b + condition * (a - b)
    rise = (end - start).masked_fill(known | (before == after), 0.0)
    block = torch.where(known, both, rise * (after - before) * condition)
    return mode.follow(torch.where(before == after, chosen, block), start, end)


@increment_rule("maximum", "minimum", "max", "min", "fmax", "fmin", "amax", "amin")
def extreme(call: IncrementCall) -> Any:
    """Compute the larger of two, or the largest of entries; the minimum with the other sign."""
    a, second = call.bind("input", "other")
    if isinstance(second, Tensor):
        part = _parts_of_two(call, a, second)
        with call.mode:
            block = part[0] * a + part[1] * second
        return call.mode.follow(block.clone(), *call.at_both())
    dim, keep = call.bind("input", "dim", "keepdim")[1:]
    dims = axes_of(dim, a.dim())
    base, end = call.mode.point(a)
    parts = _of_largest(call.mode.line_start(base, end), end, dims, 1 if "max" in call.name else -1)
    block = (a * parts).sum(dims, keepdim=bool(keep))
    before, after = call.at_both()
    if isinstance(after, Tensor):
        result = call.mode.follow(block, before, after)
        return call.mode.keep_gate(result, (a,), lambda each: (each * parts).sum(dims, keepdim=bool(keep)))
    held = call.mode.holds("argmax")
    place = after[1] if held else follow_extreme_place(call, a, dim, bool(keep), (before[1], after[1]))
    return type(after)((call.mode.follow(block, before[0], after[0]), place))


@increment_rule("clamp", "clamp_min", "clamp_max")
def clamp(call: IncrementCall) -> Any:
    """Leave what is not bounded as it is; bounds that move are the other operand of a maximum and of a minimum."""
    x, low, high = clamp_operands(call)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        with call.mode:
            return between(x, low, high)
    base, end = call.mode.point(x)
    if all(torch.equal(call.run(each, *call.args[1:]), each) for each in (base, end)):
        return call.mode.keep_gate(call.mode.follow(x.clone(), base, end), (x,), torch.clone)
    return activation(call)


def _parts_of_two(call: IncrementCall, a: Tensor, b: Tensor) -> Tensor:
    """The parts of the line along which the first of two operands is chosen, and the second.

    ½ (a + b ± |a - b|) is the same but for its rounding: beside a number as -1e38, from which a model begins a running
    maximum, it loses the other operand.
    """
    (a0, a1), (b0, b1) = call.mode.point(a), call.mode.point(b)
    sign, end = (1 if "max" in call.name else -1), a1 - b1
    start, end = sign * call.mode.line_start(a0 - b0, end), sign * end
    first, second = start.clamp(min=0.0) + end.clamp(min=0.0), start.clamp(max=0.0).abs() + end.clamp(max=0.0).abs()
    both = first + second
    crosses, equal = (first > 0) & (second > 0), both == 0
    halves = torch.full_like(both, 0.5)
    parts = [
        torch.where(equal, halves, torch.where(crosses, each / both, (each > 0).to(both))) for each in (first, second)
    ]
    return torch.stack(parts)


def _of_largest(start: Tensor, end: Tensor, dims: tuple[int, ...], sign: int) -> Tensor:
    """For each entry, the part of the line along which it is the largest (sign 1) or smallest of those along axes."""
    last = tuple(range(-len(dims), 0))
    start, rise = (
        (sign * each).nan_to_num(neginf=torch.finfo(each.dtype).min / 8).movedim(dims, last).flatten(-len(dims))
        for each in (start, end - start)
    )
    ahead, faster = (start[..., None, :] - start[..., None]), rise[..., None] - rise[..., None, :]
    equal = faster == 0
    passes = ahead / faster.masked_fill(equal, 1.0)
    first = passes.masked_fill(faster < 0, 0.0).masked_fill(equal, 0.0).masked_fill(equal & (ahead > 0), 1.0)
    until = passes.masked_fill(faster > 0, 1.0).masked_fill(equal, 1.0)
    parts = (until.amin(-1).clamp(max=1.0) - first.amax(-1).clamp(min=0.0)).clamp(min=0.0)
    parts = parts / (equal & (ahead == 0)).sum(-1)  # equal lines share alike
    wide = [end.shape[dim] for dim in dims]
    return parts.unflatten(-1, wide).movedim(last, dims)
