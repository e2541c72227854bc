"""Products of blocks of increments: each factor's increments are multiplied by the others, held along their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.linalg.quadrature import legendre_nodes

__all__ = ["product"]


def product(call: IncrementCall, factors: Sequence[Any], function: Callable[..., Tensor]) -> Tensor:
    """Compute a product that is linear in each factor."""
    begin, end = (function(*call.mode.at(place, tuple(factors))) for place in (0, 1))
    return call.mode.follow(_shared(call, list(factors), function), begin, end)


def _shared(call: IncrementCall, factors: list[Any], function: Callable[..., Tensor]) -> Tensor:
    """Add the parts of the factors that move: that of one is linear in it, the others are held."""
    mode, moving = call.mode, [place for place, each in enumerate(factors) if call.moves(each)]

    def part(kept: int, held: Callable[[int], Tensor]) -> Tensor:
        others = {place: held(place) for place in moving if place != kept}
        return function(*(others.get(place, each) for place, each in enumerate(factors)))

    def beside(kept: int) -> Callable[[int], Tensor]:
        return lambda place: mode.held_factor(factors[place], factors[kept], call.name == "mul")

    def at(node: float) -> Callable[[int], Tensor]:
        return lambda place: mode.on_line(factors[place], node)

    if len(moving) < 3:
        parts = [part(kept, beside(kept)) for kept in moving[::-1]]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if len(gates := [place for place in moving if mode.is_gate(factors[place])]) == 1:
        (gate,) = gates
        first = next(place for place in moving if place != gate)
        held = {first: mode.held_factor(factors[first], factors[gate], False)}
        of_gate = part(gate, lambda place: held.get(place, mode.point(factors[place])[1]))
        factors[gate] = mode.held_factor(factors[gate], factors[first], False)
        return _shared(call, factors, function) + of_gate
    # a product of the others is a polynomial along the line, whose mean is the Shapley value
    nodes = legendre_nodes((len(moving) + 1) // 2)
    parts = [weight * part(kept, at(node)) for kept in moving for node, weight in nodes]
    return torch.stack(parts).sum(0)


@increment_rule("mul")
def of_two(call: IncrementCall) -> Tensor:
    """Multiply two; that of a gate with a number or a held result is a gate."""
    a, b = call.args
    if call.moves(a) and call.moves(b):
        for factor, other in ((a, b), (b, a)):
            if factor in call.mode.divisors:
                return _quotient(call, other, call.mode.divisors[factor])
        return product(call, (a, b), call.run)
    result = product(call, (a, b), call.run)
    return call.mode.keep_gate(result, (a if call.moves(a) else b,), torch.zeros_like(call.mode.point(result)[1]).add)


@increment_rule("div")
def divide(call: IncrementCall) -> Tensor:
    """Divide; by what does not move or is held this is a product."""
    (a, b), rounding = call.args[:2], call.kwargs.get("rounding_mode")
    if rounding is not None:
        with call.mode:
            return (torch.floor if rounding == "floor" else torch.trunc)(a / b)
    if call.moves(b) and not call.mode.holds("reciprocal"):
        return _quotient(call, a, b)
    with call.mode:
        return a * torch.reciprocal(b) if call.moves(b) else a * (1 / b)


def _quotient(call: IncrementCall, a: Any, b: Tensor) -> Tensor:
    """Compute q = a / b by the product rule of q b = a: Δq = (Δa - ½ (q₀ + q) Δb) / ½ (b₀ + b)."""
    # By that of a and 1 / b all would be large where the divisor is small without the state, as that of a normalisation
    # is. Where the divisor changes its sign, its mean may be zero, and 1 / b is a factor.
    mode = call.mode
    (a0, a1), (b0, b1) = mode.point(a), mode.point(b)
    begin, end = a0 / b0, a1 / b1
    one_sign = b0 * b1 > 0
    inverse = torch.where(one_sign, 2 / (b0 + b1), 0.5 / b0 + 0.5 / b1)
    slope = torch.where(one_sign, (begin + end) / (b0 + b1), 0.5 * (a0 + a1) / (b0 * b1))
    found = -slope * b
    return mode.follow(a * inverse + found if call.moves(a) else found, begin, end)


@increment_rule("linalg_solve", "linalg_solve_triangular")
def solve(call: IncrementCall) -> Tensor:
    """Multiply by the inverse of a matrix that does not move."""
    matrix, b = call.args
    if call.moves(matrix):
        raise UnsupportedOperationError(f"{call.name} with a matrix that the state makes has no rule for increments")
    return product(call, (b,), lambda each: call.run(matrix, each))


@increment_rule("prod")
def prod(call: IncrementCall) -> Tensor:
    """A product of all entries, or of those along an axis."""
    x, dim, keep = call.bind("input", "dim", "keepdim")
    if dim is None:
        with call.mode:
            x, dim = x.reshape(-1), 0
    base, end = (each.prod(dim, keepdim=bool(keep)) for each in call.mode.point(x))
    others = sum(
        weight * _of_others(call.mode.on_line(x, node), dim)
        for node, weight in legendre_nodes(max(1, (x.shape[dim] + 1) // 2))
    )
    return call.mode.follow((x * others).sum(dim, keepdim=bool(keep)), base, end)


def _of_others(x: Tensor, dim: int) -> Tensor:
    """For each entry, the product of all others along an axis."""
    ones = torch.ones_like(x.narrow(dim, 0, 1))
    before = torch.cat((ones, x), dim).cumprod(dim).narrow(dim, 0, x.shape[dim])
    after = torch.cat((ones, x.flip(dim)), dim).cumprod(dim).narrow(dim, 0, x.shape[dim])
    return before * after.flip(dim)
