r"""Operations whose result is held, followed along a line where an output reads the model by that result only.

In the middle of a model softmax, exp and the like are multipliers: weights of attention, decays. At its end they are
the output. An element-wise function then is φ(z) = φ(c) + (z - c) (φ(z) - φ(c)) / (z - c), where the line begins at
c = 0 or, for a function that has a pole there, at c = 1. Of softmax p and of logsumexp the gradient is averaged along
the line from zero:

.. math:: p(z) = p(0) + \int_0^1 \frac{∂p}{∂z}(αz)\, dα\; z

Source:
    The average is that of integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365), of the last operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.mode import HeldCall, followed
from unrolled.held_forward.operations.operands import carries
from unrolled.held_forward.rules.activation import from_zero
from unrolled.linalg.quadrature import legendre_nodes

__all__: list[str] = []

_NODE_COUNTS = (16, 64, 256)
"""Numbers of nodes of the quadrature that are tried in turn."""
_INTEGRAL_TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6}
"""How far the integral may be from the known rise; 0.01 in other types."""


@followed("exp", "exp2", "cos", "cosh")
def from_zero_on(call: HeldCall) -> Tensor:
    """Follow φ from φ(0)."""
    return _from_zero(call, call.args[0], call.function)


@followed("log", "log2", "log10", "reciprocal", "rsqrt", "lgamma", "digamma", "acosh")
def from_one_on(call: HeldCall) -> Tensor:
    """Follow φ from φ(1)."""
    return _from_one(call, call.args[0], call.function)


@followed("div")
def quotient(call: HeldCall) -> Any:
    """Follow a / b from a / 1."""
    a, b = call.args[:2]
    return call.held() if call.kwargs.get("rounding_mode") else _from_one(call, b, partial(call.run, a))


@followed("pow")
def power(call: HeldCall) -> Tensor:
    """Follow xⁿ from 1, and aˣ from a⁰."""
    base, exponent = call.args[:2]
    if carries(base):
        return _from_one(call, base, lambda x: call.run(x, exponent))
    return _from_zero(call, exponent, partial(call.run, base))


def _from_zero(call: HeldCall, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Follow a function of x along the line from 0."""
    risen, at_zero = from_zero(call, x, function)
    return risen + call.rows.constant(at_zero.expand_as(risen).contiguous())


def _from_one(call: HeldCall, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Follow a function of x along the line from 1."""
    with torch.no_grad():
        held = x.detach()
        at_one, value = function(torch.ones_like(held)), function(held)
        factor = (value - at_one) / torch.where(held == 1, torch.ones_like(held), held - 1)
        lost = ~torch.isfinite(factor)  # at a pole, which a branch that is not chosen may hold
        factor = factor.masked_fill(lost, 0.0)
    return x.masked_fill(lost, 0.0) * factor + call.rows.constant(torch.where(lost, value, at_one - factor))


@followed("softmax", "_softmax", "_safe_softmax")
def softmax(call: HeldCall) -> Tensor:
    """Follow softmax from equal parts; what is masked takes no part."""
    x, dim = call.bind("input", "dim")
    dim = -1 if dim is None else dim
    value = call.held()
    inside = value > 0
    size = inside.to(value.dtype)
    start = size / size.sum(dim, keepdim=True)
    entry = x.masked_fill(~inside, 0.0).to(value.dtype)

    def along(z: Tensor, parts: Tensor) -> Tensor:
        return parts * (z - (parts * z).sum(dim, keepdim=True))

    return _averaged(entry, inside, dim, along, value, start) + call.rows.constant(start)


@followed("logsumexp")
def logsumexp(call: HeldCall) -> Tensor:
    """Follow log Σ exp x from the logarithm of the number of entries."""
    x, dim, keep = call.bind("input", "dim", "keepdim")
    value = torch.logsumexp(x.detach(), dim, keepdim=True)
    inside = (x.detach() - value).exp() > 0
    start = inside.to(x.dtype).sum(dim, keepdim=True).log()
    entry = x.masked_fill(~inside, 0.0)
    risen = _averaged(entry, inside, dim, lambda z, parts: (parts * z).sum(dim, keepdim=True), value, start)
    whole = risen + call.rows.constant(start)
    return whole if keep else whole.sum(dim)  # of one entry


def _averaged(
    x: Tensor,
    inside: Tensor,
    dim: int,
    along: Callable[[Tensor, Tensor], Tensor],
    value: Tensor,
    start: Tensor,
) -> Tensor:
    """Average a derivative along the line from zero, linear in x; nodes are added until it gives the known rise."""
    held, scale = x.detach(), max(1.0, float(value.abs().max()))  # rounding grows with the value
    for count in _NODE_COUNTS:
        with torch.no_grad():
            parts = [
                (w, torch.softmax((node * held).masked_fill(~inside, -torch.inf), dim))
                for node, w in legendre_nodes(count)
            ]
            gap = (sum(w * along(held, p) for w, p in parts) - (value - start)).abs().max()
        if float(gap) <= scale * _INTEGRAL_TOLERANCE.get(value.dtype, 1e-2):
            break
    return torch.stack([w * along(x, p) for w, p in parts]).sum(0)
