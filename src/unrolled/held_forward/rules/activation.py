r"""Element-wise functions: φ(z) = φ(0) + z (φ(z) - φ(0)) / z, of which the quotient is held and φ(0) is a constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries, detached
from unrolled.held_forward.operations.operation_call import axes_of
from unrolled.held_forward.tensor_facts.gates import Gate
from unrolled.linalg.finite_sum import has_finite_sum

__all__ = ["ELEMENTWISE", "from_zero"]


def from_zero(call: HeldCall, x: Tensor, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Give φ(x) - φ(0), linear in x, and φ(0).

    Where x is infinite, as a mask makes it, or φ(x) is no number, as in a branch that is not chosen, φ(x) - φ(0) is a
    constant.
    """
    held = x.detach()
    if has_finite_sum(held):
        risen, at_zero = _from_zero(x, function)
        if has_finite_sum(risen.detach()):
            return risen, at_zero
    with torch.no_grad():
        value = function(held.clone())
    lost = ~(torch.isfinite(held) & torch.isfinite(value))
    risen, at_zero = _from_zero(x.masked_fill(lost, 0.0), function)
    return risen + call.rows.constant((value - at_zero).masked_fill(~lost, 0.0)), at_zero


def _from_zero(x: Tensor, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        held = x.detach()
        at_zero = function(held.new_zeros(()))
        # at zero itself the product is zero whatever the factor is, so another divisor will do
        divisor = held + (held.abs() < torch.finfo(held.dtype).tiny ** 0.5)
        factor = (function(held.clone()) - at_zero) / divisor
    risen = x * factor
    return risen.real if risen.is_complex() and not at_zero.is_complex() else risen, at_zero  # |z| = Re (z |z| / z)


ELEMENTWISE = frozenset(
    "relu relu6 gelu silu tanh elu selu celu leaky_relu mish hardtanh hardswish softsign tanhshrink softshrink "
    "hardshrink erf erfc erfinv sin asin atan sinh asinh atanh sinc expm1 log1p softplus log_sigmoid threshold sqrt "
    "abs rrelu special_erfcx special_log_ndtr".split()
)
"""Functions of one number that are finite at zero."""


@rule(*ELEMENTWISE)
def activation(call: HeldCall) -> Tensor:
    """φ(x); a value at zero becomes a row."""
    x, *rest = call.args
    if not carries(x):
        return call.mode.hold(call)
    risen, at_zero = from_zero(call, x, lambda z: call.function(z, *detached(rest), **detached(call.kwargs)))
    return risen if not bool(at_zero) else risen + call.rows.constant(at_zero.expand_as(x).contiguous())


@rule("sigmoid", "hardsigmoid")
def gate(call: HeldCall) -> Tensor:
    """σ(x): a gate; where a mask has closed or opened it, it is a number and has no part."""
    x = call.args[0]
    held = x.detach()
    finest = torch.promote_types(held.dtype, torch.float32)  # in half precision 10 is a logit as any other
    beyond = -math.log(torch.finfo(finest).tiny)  # any logit that is learned
    if held.numel() and not float(held.abs().amax()) <= beyond:  # NaN is not either
        fixed = ~(held.abs() <= beyond)
        risen, at_zero = _from_zero(x.masked_fill(fixed, 0.0), call.function)
        at_zero = torch.where(fixed, call.held(), at_zero)
        return call.gates.keep_sigmoid(risen + call.rows.constant(at_zero), Gate(risen, at_zero))
    risen, at_zero = _from_zero(x, call.function)
    result = risen + call.rows.summand(call.rows.origin(at_zero), at_zero, risen.shape)
    return call.gates.keep_sigmoid(result, Gate(risen, at_zero.expand_as(risen)))


@rule("prelu", "_prelu_kernel")
def prelu(call: HeldCall) -> Tensor:
    """Keep x where it is positive, and multiply it by a elsewhere."""
    x, slope = call.args
    wide = slope.detach().reshape(1, -1, *[1] * (x.dim() - 2)) if slope.numel() > 1 and x.dim() > 1 else slope.detach()
    return x * torch.where(x.detach() > 0, torch.ones_like(x.detach()), wide.expand_as(x))


@rule("square")
def square(call: HeldCall) -> Tensor:
    """x² = x · x, of which one is held; that of a gate is a gate."""
    (x,) = call.args
    return call.gates.keep_power(x * x.detach(), x, 2, call.mode.share)


@rule("pow")
def power(call: HeldCall) -> Tensor:
    """xⁿ = x · xⁿ⁻¹ where the power is positive; a negative one is held, as a divisor is."""
    x, exponent = call.args[0], detached(call.args[1])
    if not carries(x):
        return call.mode.hold(call)
    numbers = torch.as_tensor(exponent, device=x.device)
    if numbers.is_complex() or not bool((numbers > 0).any()):
        return call.mode.hold(call)
    if isinstance(exponent, Tensor) and not bool((exponent > 0).all()):
        return _where_it_rises(call, x, exponent)
    risen, _ = from_zero(call, x, lambda z: torch.pow(z, exponent))
    number = float(numbers.reshape(-1)[0])
    return call.gates.keep_power(risen, x, number, call.mode.share) if bool((numbers == number).all()) else risen


def _where_it_rises(call: HeldCall, x: Tensor, exponent: Tensor) -> Tensor:
    """Hold the powers that are not positive, and give the others as lines from zero."""
    value: Tensor = call.mode.hold(call)
    rises = exponent > 0
    if carries(value):  # it is followed
        return value
    risen, _ = from_zero(call, x * rises, lambda z: torch.pow(z, exponent.where(rises, 1.0)))
    fixed = value.masked_fill(rises, 0.0)
    call.rows.inherit(fixed, [value])
    return risen + call.rows.constant(fixed)


@rule("norm", "linalg_vector_norm", "linalg_norm", "frobenius_norm", "norm_except_dim")
def norm(call: HeldCall) -> Tensor:
    """‖x‖ = Σ x ∂‖x‖/∂x: a norm is homogeneous, so its gradient is what is held; that of order 0 counts."""
    x, *rest = call.args
    with torch.enable_grad():
        point = x.detach().clone().requires_grad_()
        value: Any = call.run(point, *rest)
        (slope,) = torch.autograd.grad(value.sum(), point, allow_unused=True)
    if slope is None:
        return call.mode.hold(call)
    dims = _reduced(call, x.dim(), value)
    return (x * slope).sum(dim=dims, keepdim=value.dim() == x.dim()) if dims else (x * slope).sum()


def _reduced(call: HeldCall, count: int, value: Tensor) -> tuple[int, ...] | None:
    """The axes that a norm was taken over."""
    given = call.named("input", *(() if call.name == "frobenius_norm" else ("p",)), "dim").get("dim")
    if call.name == "norm_except_dim":
        return tuple(axis for axis in range(count) if axis != (given or 0))
    return None if given is None and not value.dim() else axes_of(given, count)
