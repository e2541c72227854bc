r"""Products: linear in one factor, and shared between the factors where several carry value.

A product of m factors that carry value credits each with 1/m, if it is one operation (einsum, prod); a * b * c is
shared by binary steps. Where one factor is a gate, whose value at zero is γ₀, its product with the content c is
γ₀ c + (γ - γ₀) c: the first part is the content's, of the second the share p is the content's and 1 - p is the gate's.
A product of gates is shared by halves itself, and is a gate where it multiplies a content.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries, detached, for_each_tensor, is_parameter
from unrolled.held_forward.tensor_facts.gates import Gate
from unrolled.held_forward.weighed_values import WeighedValues
from unrolled.linalg.finite_sum import has_finite_sum

__all__ = ["finite_only", "shared"]


def shared(call: HeldCall, factors: list[Tensor], product: Callable[..., Tensor]) -> Tensor:
    """Compute a product that is linear in each factor: a gate among contents, or each with an equal part."""
    factors = call.mode.vectors.numbers.held_beside_value(factors)
    valued = [place for place, each in enumerate(factors) if carries(each)]
    if len(valued) == 1:
        return finite_only(call, valued[0], factors, product)
    gates = _gates_among(call, factors)
    if len(gates) == 1:
        ((place, gate),), p = gates, call.mode.share

        def beside(contents: list[Tensor], factor: Tensor) -> list[Tensor]:
            return [*contents[:place], factor, *contents[place + 1 :]]

        of_gate = product(*beside([detached(each) for each in factors], gate.of_gate(p)))
        return shared(call, beside(factors, gate.of_content(p)), product) + of_gate
    parts = [
        product(*(each if place == kept else detached(each) for place, each in enumerate(factors))) for kept in valued
    ]
    return torch.stack(parts).mean(dim=0) if len(parts) > 2 else 0.5 * (parts[0] + parts[1])


def finite_only(
    call: HeldCall, place: int, factors: list[Tensor], product: Callable[..., Tensor], instead: float = 0.0
) -> Tensor:
    """Compute what is linear in one factor, of which what is not finite is a constant.

    An output that is finite reads none of it: a mean over no words, which is 0/0 and replaced afterwards. In its
    gradient that factor would make NaN of zero, and of what else it multiplies.

    Args:
        call: The operation.
        place: Place of the factor that carries value.
        factors: All factors.
        product: What is computed of them.
        instead: Replaces the entries of held factors that make a result which is not finite.
    """
    result = product(*factors)
    told = result.detach()
    if has_finite_sum(told):
        return result
    lost = ~torch.isfinite(told)
    if not bool(lost.any()):
        return result
    held = [each if k == place else _finite(each, instead) for k, each in enumerate(factors)]
    return product(*held).masked_fill(lost, 0.0) + call.rows.constant(told.masked_fill(~lost, 0.0))


def _finite(factor: Any, instead: float) -> Any:
    """Replace what cannot be a factor of a finite result; a parameter stays, which is refused by its name."""
    if not isinstance(factor, Tensor) or is_parameter(factor):
        return factor
    unfit = ~torch.isfinite(factor)
    return factor.masked_fill(unfit | (factor == 0) if instead else unfit, instead)


def _gates_among(call: HeldCall, factors: list[Tensor]) -> list[tuple[int, Gate]]:
    """The factors that are gates and carry value, by their places."""
    found = ((place, call.gates.of(each)) for place, each in enumerate(factors) if carries(each))
    return [(place, gate) for place, gate in found if gate is not None and not gate.is_content]


@rule("mul")
def mul(call: HeldCall) -> Tensor:
    """Compute a ⊙ b, a gate times a content among them."""
    a, b = call.mode.vectors.numbers.held_beside_value(call.args[:2])
    if carries(a) and carries(b):
        gates, p = _gates_among(call, [a, b]), call.mode.share
        if len(gates) == 2:
            return _of_gates(call, (a, gates[0][1]), (b, gates[1][1]))
        if not gates:
            return shared(call, [a, b], torch.mul)
        ((place, gate),) = gates
        return gate.times(a if place else b, p)
    value, other = (a, b) if carries(a) else (b, a)
    return _scaled(call, value, other)


def _of_gates(call: HeldCall, last: tuple[Tensor, Gate], first: tuple[Tensor, Gate]) -> Tensor:
    """Compute a product of gates, which is a gate; entries of which one is a content are contents."""
    (a, gate), (b, other), p = last, first, call.mode.share
    halves, product = shared(call, [a, b], torch.mul), gate.behind(other, p)
    if gate.contents is None and other.contents is None:
        return call.gates.keep(halves, product)
    a_is_content, b_is_content = gate.at_zero == 0, other.at_zero == 0
    either = a_is_content | b_is_content
    result = torch.where(either, torch.where(b_is_content, gate.times(b, p), other.times(a, p)), halves)
    risen, at_zero = torch.where(either, result, product.risen), product.at_zero.masked_fill(either, 0.0)
    return call.gates.keep(result, Gate(risen, at_zero, of_gates=True))


def _scaled(call: HeldCall, value: Tensor, other: Any) -> Tensor:
    """Compute a product with a held factor: that of a gate is a gate."""
    gate, result = call.gates.of(value), finite_only(call, 0, [value, other], torch.mul)
    if gate is None:
        return result
    risen, at_zero = finite_only(call, 0, [gate.risen, other], torch.mul), gate.at_zero * other
    if not gate.of_gates and isinstance(other, Tensor) and call.rows.origin(other).kind in ("held", "computed"):
        call.rows.mark(at_zero, *call.rows.origin(other))  # what is held shows by its name, not as a constant
        result = risen + call.rows.constant(at_zero)
    return call.gates.keep(result, Gate(risen, at_zero, gate.of_gates))


@rule("_grouped_mm")
def grouped_product(call: HeldCall) -> Tensor:
    """A product of each group of rows with a matrix of its own: the experts of a mixture."""
    rows, matrices, ends, bias = call.bind("self", "mat2", "offs", "bias")
    if (rows.dim(), matrices.dim()) != (2, 3) or bias is not None:
        raise UnsupportedOperationError(
            f"{call.name} of tensors of {rows.dim()} and {matrices.dim()} dimensions"
            f"{'' if bias is None else ' with a bias'} has no rule; expected 2 and 3 dimensions without a bias"
        )
    bounds = pairwise([0, *ends.tolist()])
    with call.mode:  # one product a group: torch's gradient of all at once takes no gradient that is expanded
        products = [rows[i:j] @ matrix for (i, j), matrix in zip(bounds, matrices, strict=True)]
        # rows of no group: torch leaves their results as the memory is
        beyond = rows.new_zeros(len(rows) - int(ends[-1]), matrices.shape[2])
        return torch.cat([*products, beyond])


@rule("prod")
def prod(call: HeldCall) -> Tensor:
    """A product of m entries: each is credited with 1/m."""
    x, dim, keep = call.bind("input", "dim", "keepdim")
    if dim is None:
        x, dim = x.reshape(-1), 0
    held, count = x.detach(), x.shape[dim]
    if not count:  # 1, whatever it is a product of
        return call.held()
    others = torch.stack(
        [held.index_fill(dim, torch.tensor([k], device=held.device), 1.0).prod(dim) for k in range(count)], dim
    )
    result, gate = (x * others / count).sum(dim, keepdim=True), call.gates.of(x)
    if gate is not None and gate.contents is None:
        parts = zip(gate.risen.split(1, dim), gate.at_zero.split(1, dim), strict=True)
        entries = [Gate(risen, at_zero) for risen, at_zero in parts]
        call.gates.keep(result, reduce(lambda first, last: last.behind(first, call.mode.share), entries))
    if keep:
        return result
    with call.mode:
        return result.squeeze(dim)


@rule("div")
def div(call: HeldCall) -> Tensor:
    """Compute a / b, of which the divisor is held."""
    a, b = call.args[:2]
    if call.kwargs.get("rounding_mode") or not carries(a):
        return call.mode.hold(call)
    divisor, gate = detached(b), call.gates.of(a)
    result = finite_only(call, 0, [a, divisor], torch.div, instead=1.0)
    if gate is None:
        return result
    risen = finite_only(call, 0, [gate.risen, divisor], torch.div, instead=1.0)
    return call.gates.keep(result, Gate(risen, gate.at_zero / divisor, gate.of_gates))


@rule("remainder", "fmod")
def remainder(call: HeldCall) -> Tensor:
    """Compute a - q b, of which the whole quotient q is held."""
    a, b = call.args[:2]
    with torch.no_grad():
        quotient = ((detached(a) - call.held()) / detached(b)).round()
    call.rows.mark(quotient, "held", call.name)
    with call.mode:
        return a - quotient * b


@rule("polar")
def polar(call: HeldCall) -> Tensor:
    """Compute r exp(iθ), of which the second is held: that of a gate is a gate."""
    size, angle = call.bind("abs", "angle")
    if not carries(size):
        return call.mode.hold(call)
    turned = torch.polar(torch.ones_like(angle.detach()), angle.detach())
    if carries(angle):
        call.rows.mark(turned, "held", call.name)
    return _scaled(call, size, turned)


@rule("linalg_solve", "linalg_solve_triangular")
def solve(call: HeldCall) -> Tensor:
    """Compute A⁻¹ b, of which the matrix is held, as a divisor is."""
    matrix, b = call.args[:2]
    return call.run(matrix.detach(), b) if carries(b) else call.mode.hold(call)


@rule("scaled_dot_product_attention")
def attention(call: HeldCall) -> Tensor:
    """Attention: the weights are held, the values carry value."""
    _, _, value = call.bind("query", "key", "value")
    if not carries(value):
        return call.mode.hold(call)
    # of their own memory: the weights are computed again, and a model may change a mask in place meanwhile
    args, kwargs = (for_each_tensor(detached(each), Tensor.clone) for each in (call.args, call.kwargs))

    def weigh(values: Tensor) -> Tensor:
        if len(args) > 2:
            return call.function(*args[:2], values, *args[3:], **kwargs)
        return call.function(*args, **{**kwargs, "value": values})

    result: Tensor = WeighedValues.apply(value, weigh, value.detach())
    return result


@rule("cosine_similarity")
def cosine_similarity(call: HeldCall) -> Tensor:
    """Compute x · y / (‖x‖ ‖y‖), of which the norms are held."""
    x, y, dim, eps = call.bind("x1", "x2", "dim", "eps")
    dim, eps = 1 if dim is None else dim, 1e-8 if eps is None else eps
    norms = (each.detach().norm(dim=dim, keepdim=True).clamp_min(eps) for each in (x, y))
    return shared(call, [x, y], torch.mul).div(next(norms)).div(next(norms)).sum(dim)
