"""Operations that move, choose or join logarithms: what they are logarithms of is moved in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import carries, detached, for_each_tensor, holds_numbers, operands
from unrolled.held_forward.rules.additive import where_operands
from unrolled.held_forward.tensor_facts.logarithms import Decays, Logarithm, LogarithmCall, beside, of_nothing
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS, JOINS, MOVES

__all__ = ["stand_in"]

_ALONG = frozenset("pad constant_pad_nd cat getitem narrow clone contiguous".split())
"""What may leave the axis of a cumulative sum where it is."""


@beside(*MOVES, *CONVERSIONS, "detach")
def move(call: LogarithmCall) -> Any:
    """Move values as their logarithms are moved."""
    x, *rest = call.args or (None,)
    # cutting a gradient does not cut value
    function = torch.Tensor.clone if call.name == "detach" else call.mover()
    if call.of(x) is None or function is None:
        return call.plain()
    return _moved(call, (x,), lambda args: function(args[0], *rest, **call.kwargs))


@beside(*JOINS)
def join(call: LogarithmCall) -> Any:
    """Join values as their logarithms are joined."""
    (given,) = call.bind("tensors")
    return _moved(call, given, lambda args: call.function(args, *call.args[1:], **call.options_beyond("tensors")))


@beside("where")
def where(call: LogarithmCall) -> Any:
    """Choose between values."""
    condition, *given = where_operands(call)
    like = next((each for each in given if call.of(each) is not None), None)
    if like is None:
        return call.plain()
    chosen = [each if isinstance(each, Tensor) else torch.full_like(like.detach(), each) for each in given]
    return _moved(call, tuple(chosen), lambda args: torch.where(condition, *args))


@beside("masked_fill")
def masked_fill(call: LogarithmCall) -> Any:
    """Replace some values by a constant."""
    x, mask, number = call.bind("input", "mask", "value")
    if call.of(x) is None:
        return call.plain()
    filled = number if isinstance(number, Tensor) else torch.full_like(x.detach(), number)
    return _moved(call, (x, filled), lambda args: torch.where(mask, args[1], args[0]))


@beside("clamp", "clamp_min", "clamp_max")
def clamp(call: LogarithmCall) -> Any:
    """Keep a value whose logarithm lies between the bounds; a bound is a constant."""
    bounds = (*call.args[1:], *call.kwargs.values())
    if not call.args or call.of(call.args[0]) is None or any(isinstance(each, Tensor) for each in bounds):
        return call.plain()
    x = call.args[0]
    bounded = call.function(x.detach(), *call.args[1:], **call.kwargs)
    inside = bounded == x.detach()
    return _moved(call, (x, bounded), lambda args: torch.where(inside, *args))


@beside("pad", "constant_pad_nd")
def pad(call: LogarithmCall) -> Any:
    """Pad values by the value whose logarithm the padding is."""
    names = ("input", "pad", "mode", "value") if call.name == "pad" else ("input", "pad", "value")
    given = call.named(*names)
    x, widths, number = given["input"], given["pad"], given.get("value")
    if call.of(x) is None or given.get("mode") not in (None, "constant"):
        return call.plain()
    outside = torch.nn.functional.pad(torch.zeros_like(x.detach(), dtype=torch.bool), widths, value=True)
    filled = torch.full(outside.shape, float(number or 0.0), dtype=x.dtype, device=x.device)
    return _moved(
        call, (x, filled), lambda args: torch.where(outside, args[1], torch.nn.functional.pad(args[0], widths))
    )


def _moved(call: LogarithmCall, given: Any, rearrange: Callable[[Any], Any]) -> Any:
    """Move values as the operation moves their logarithms; gates stay gates unless they are chosen from."""
    result, tensors = call.plain(), [each for each in operands(given) if holds_numbers(each)]
    found = [each for each in map(call.of, tensors) if each is not None]
    signs = {each.sign for each in found if each.value is not None}
    if not found or len(signs) > 1 or any(carries(each) and call.of(each) is None for each in tensors):
        return result
    if not signs:
        held = next((each for each in found if each.decays is not None), Logarithm(None))
        return _keep_each(call, result, None, replace(held, decays=_moved_decays(call, given, rearrange)))
    (sign,), gates = signs, call.mode.gates
    values = for_each_tensor(given, lambda each: stand_in(call, each, sign))
    with call.mode:
        moved = rearrange(values)
    exact = rearrange(detached(values))
    moved = [call.exact(*each) for each in zip(_several(moved), _several(exact), strict=True)]
    chosen = call.name in ("where", "masked_fill")
    if not chosen and all(each.value is None or gates.of(each.value) for each in found):
        risen = rearrange(
            for_each_tensor(values, lambda z: gate.risen if (gate := gates.of(z)) else torch.zeros_like(z))
        )
        gates.keep_each(moved, risen, rearrange(for_each_tensor(values, lambda z: getattr(gates.of(z), "at_zero", z))))
    return _keep_each(call, result, moved, Logarithm(None, sign))


def _moved_decays(call: LogarithmCall, given: Any, rearrange: Callable[[Any], Any]) -> Decays | None:
    """Move the gates of a cumulative sum along its axis; what is put beside it are gates that are open."""
    known = [found.decays for each in operands(given) if (found := call.of(each)) is not None and found.decays]
    if call.name not in _ALONG or len(known) != 1:
        return None
    decays = known[0]

    def moved(part: Tensor, beside_it: Callable[[Tensor], Tensor]) -> Tensor:
        tensor: Tensor = rearrange(
            for_each_tensor(given, lambda u: part if getattr(call.of(u), "decays", None) else beside_it(u.detach()))
        )
        return tensor

    risen = moved(decays.risen, torch.zeros_like)
    if risen.dim() != decays.risen.dim():
        return None
    return Decays(
        risen,
        moved(decays.at_zero, torch.ones_like),
        moved(decays.logs, torch.zeros_like),
        decays.dim,
    )


def _keep_each(call: LogarithmCall, results: Any, values: Any, like: Logarithm) -> Any:
    """Remember the values of the results of an operation, unless a result is an operand itself."""
    for u, z in zip(_several(results), _several(values, len(_several(results))), strict=True):
        if call.of(u) is None:
            call.mode.logarithms.keep(u, replace(like, value=z))
    return results


def _several(given: Any, count: int = 1) -> Any:
    return given if isinstance(given, tuple | list) else [given] * count


def stand_in(call: LogarithmCall, u: Tensor, sign: int) -> Any:
    """Return the value of which u is the logarithm: of a constant, one, or nothing if it is minus infinity."""
    found = call.of(u)
    if found is not None and found.value is not None:
        return found.value
    if not holds_numbers(u):
        return u
    one = (~of_nothing(sign * u.detach())).to(u.dtype)
    call.mode.rows.mark(one, *(call.mode.rows.origin(u) if found is None else ("held", "exp")))
    return one
