"""Operations that are computed by their parts, in a held run and on blocks of increments alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.mode import HeldCall, Rule, followed, rule
from unrolled.held_forward.operations.operands import carries, operands
from unrolled.held_forward.operations.operands_read import CONVOLUTIONS
from unrolled.held_forward.rules.increment_products import product
from unrolled.held_forward.rules.product import shared

__all__: list[str] = []

Call = HeldCall | IncrementCall


def _by_parts(
    *names: str, held: Callable[..., Callable[[Rule], Rule]] = rule
) -> Callable[[Callable[[Call], Tensor]], Callable[[Call], Tensor]]:
    """Register a rule of both kinds of run; ``held`` registers that of a held run."""

    def register(function: Callable[[Call], Tensor]) -> Callable[[Call], Tensor]:
        held(*names)(function)
        increment_rule(*names)(function)
        return function

    return register


def _product(call: Call, factors: Sequence[Any], function: Callable[..., Tensor]) -> Tensor:
    """Compute a product that is linear in each factor; beside a bias that alone carries value, that of the others."""
    moves = carries if isinstance(call, HeldCall) else call.moves
    if not any(map(moves, factors)):
        with call.mode:
            return function(*factors)
    if isinstance(call, HeldCall):
        return shared(call, list(factors), function)
    return product(call, factors, function)


@_by_parts(
    *"matmul mm bmm mv dot vdot inner outer ger kron tensordot cross linalg_cross linalg_matmul linalg_vecdot".split(),
    "_sparse_mm",
)
def of_two(call: Call) -> Tensor:
    """A product of two, along axes that further arguments may name."""
    a, b, *axes = call.args
    return _product(call, (a, b), lambda a, b: call.run(a, b, *axes))


@_by_parts("einsum")
def einsum(call: Call) -> Tensor:
    """A sum of products of any number of factors."""
    equation, *factors = call.args
    return _product(call, operands(factors), lambda *each: torch.functional.einsum(equation, *each))


@_by_parts("linalg_multi_dot", "chain_matmul")
def multi_dot(call: Call) -> Tensor:
    """A product of several matrices."""
    factors = operands((*call.args, *call.kwargs.values()))
    return _product(call, factors, lambda *each: torch.linalg.multi_dot(each))


@_by_parts("linear", "bilinear")
def layer(call: Call) -> Tensor:
    """Compute x Wᵀ + b, or xᵀ A y + b."""
    names = ("input", "weight", "bias") if call.name == "linear" else ("input1", "input2", "weight", "bias")
    *factors, bias = call.bind(*names)
    return _with_bias(call, _product(call, factors, call.function), bias)


@_by_parts(*CONVOLUTIONS)
def convolution(call: Call) -> Tensor:
    """A convolution and its bias."""
    names = ("input", "weight", "bias")
    x, weight, bias = call.bind(*names)
    options = call.options_beyond(*names)
    if isinstance(call, IncrementCall) and call.moves(weight):
        raise UnsupportedOperationError(f"{call.name} with a kernel that the state makes has no rule for increments")
    result = _product(call, (x, weight), lambda a, w: call.function(a, w, None, *call.args[3:], **options))
    return _with_bias(call, result, bias, (-1, *[1] * (weight.dim() - 2)))


def _with_bias(call: Call, result: Tensor, bias: Any, shape: tuple[int, ...] | None = None) -> Tensor:
    """Add a bias, which in a held run becomes a row in the shape of the result."""
    if bias is None:
        return result
    if isinstance(call, IncrementCall):
        with call.mode:
            return result + (bias if shape is None else bias.reshape(shape))
    wide = bias.to(result.dtype) if shape is None else bias.to(result.dtype).reshape(shape)
    if carries(bias) and not carries(result):
        with call.mode:  # which makes a row of what the bias is added to
            return result + wide
    if carries(bias):
        return result + wide
    if not bool(bias.count_nonzero()):
        return result
    return result + call.rows.summand(call.rows.origin(bias), wide, result.shape)


@_by_parts("addmm", "baddbmm", "addmv", "addbmm", "addr", "_sparse_addmm")
def product_and_sum(call: Call) -> Tensor:
    """Compute β a + α (b c)."""
    a, b, c = call.args[:3]
    beta, alpha = call.kwargs.get("beta", 1), call.kwargs.get("alpha", 1)
    special = {"addr": torch.outer, "addbmm": lambda x, y: torch.bmm(x, y).sum(0)}
    with call.mode:
        found = special.get(call.name, torch.matmul)(b, c)
        found = found if alpha == 1 else alpha * found
        if not beta:  # a may hold anything
            return found
        return found + (a if beta == 1 else beta * a)


@_by_parts("logaddexp", held=followed)
def logaddexp(call: Call) -> Tensor:
    """Compute the logarithm of a sum of two exponentials; in a held run where it is followed."""
    parts = call.bind("input", "other")
    with call.mode:
        return torch.logsumexp(torch.stack(torch.broadcast_tensors(*parts)), dim=0)


@followed("logcumsumexp")
def logcumsumexp(call: Call) -> Tensor:
    """Compute logarithms of sums of the first entries where it is followed."""
    return _of_the_first(call, torch.logsumexp)


@_by_parts("cumprod", held=followed)
def cumprod(call: Call) -> Tensor:
    """Compute products of the first entries, each as a product is shared; in a held run where it is followed."""
    return _of_the_first(call, torch.prod)


def _of_the_first(call: Call, joined: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Compute what one, two and more of the first entries give together."""
    x, dim = call.bind("input", "dim")
    with call.mode:
        return torch.stack([joined(x.narrow(dim, 0, count + 1), dim) for count in range(x.shape[dim])], dim)


@_by_parts("glu")
def glu(call: Call) -> Tensor:
    """Compute a ⊙ σ(b)."""
    x, dim = call.bind("input", "dim")
    with call.mode:
        content, gate = x.chunk(2, -1 if dim is None else dim)
        return content * torch.sigmoid(gate)


@_by_parts("lerp")
def lerp(call: Call) -> Tensor:
    """Compute a + w (b - a): a weight without value is held; one with value is a gate between the two."""
    a, b, weight = call.args
    with call.mode:
        return a + weight * (b - a)


@_by_parts("addcmul", "addcdiv")
def fused(call: Call) -> Tensor:
    """Compute a + s b c, or a + s b / c."""
    a, b, c = call.args
    scale = call.kwargs.get("value", 1)
    with call.mode:
        found = b * c if call.name == "addcmul" else b / c
        return a + (found if scale == 1 else scale * found)


@_by_parts("frac")
def frac(call: Call) -> Tensor:
    """Compute x - trunc(x)."""
    (x,) = call.args
    with call.mode:
        return x - torch.trunc(x)


@_by_parts("xlogy", "special_xlog1py")
def times_logarithm(call: Call) -> Tensor:
    """Compute x log(y), or x log(1 + y); where x is zero it is zero."""
    kind = torch.result_type(*call.args)  # to which torch converts both before it takes the logarithm
    with call.mode:
        x, y = (
            each.to(kind) if isinstance(each, Tensor) else torch.tensor(each, dtype=kind, device="cpu")
            for each in call.args
        )
        inside = torch.where(x == 0, 1.0, y)
        return x * (torch.log(inside) if call.name == "xlogy" else torch.log1p(inside))


@_by_parts("special_entr")
def entropy(call: Call) -> Tensor:
    """Compute -x log(x)."""
    (x,) = call.args
    with call.mode:
        return -torch.xlogy(x, x)


@_by_parts("logit")
def logit(call: Call) -> Tensor:
    """Compute log(x) - log(1 - x)."""
    x, eps = call.bind("input", "eps")
    with call.mode:
        inside = x if eps is None else x.clamp(eps, 1 - eps)
        return torch.log(inside) - torch.log(1 - inside)


@_by_parts("conv_tbc")
def convolution_over_time(call: Call) -> Tensor:
    """A convolution of (time, batch, channels)."""
    x, weight, bias, pad = (*call.args, 0)[:4]
    with call.mode:
        return torch.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


@_by_parts("group_norm")
def group_norm(call: Call) -> Tensor:
    """Normalise each group of channels as a layer norm does."""
    x, groups, weight, bias, eps = call.bind("input", "num_groups", "weight", "bias", "eps")
    with call.mode:
        parts, shape = x.reshape(x.shape[0], groups, -1), (1, -1, *[1] * (x.dim() - 2))
        result = torch.layer_norm(parts, parts.shape[-1:], eps=1e-5 if eps is None else eps).reshape(x.shape)
        result = result if weight is None else result * weight.reshape(shape)
        return result if bias is None else result + bias.reshape(shape)


@_by_parts("hypot")
def hypot(call: Call) -> Tensor:
    """The norm of pairs of numbers."""
    a, b = call.bind("input", "other")
    with call.mode:
        return torch.linalg.vector_norm(torch.stack(torch.broadcast_tensors(a, b)), dim=0)


@_by_parts("dist")
def distance(call: Call) -> Tensor:
    """The norm of a difference."""
    a, b, p = call.bind("input", "other", "p")
    with call.mode:
        return torch.linalg.vector_norm(a - b, 2.0 if p is None else p)


@_by_parts("pairwise_distance")
def pairwise_distance(call: Call) -> Tensor:
    """The norm of a difference, to which torch adds a small number."""
    a, b, p, eps, keep = call.bind("x1", "x2", "p", "eps", "keepdim")
    with call.mode:
        gap = a - b + (1e-6 if eps is None else eps)
        return torch.linalg.vector_norm(gap, 2.0 if p is None else p, dim=-1, keepdim=bool(keep))


@_by_parts("cdist")
def cdist(call: Call) -> Tensor:
    """The norms of all differences of two lists of vectors."""
    a, b, p = call.bind("x1", "x2", "p")
    with call.mode:
        return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), 2.0 if p is None else p, dim=-1)


@_by_parts("renorm")
def renorm(call: Call) -> Tensor:
    """Scale the slices along an axis whose norm is above a bound down to it, as torch does, which adds 1e-7."""
    x, p, dim, bound = call.bind("input", "p", "dim", "maxnorm")
    with call.mode:
        others = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
        size = torch.linalg.vector_norm(x, p, dim=others, keepdim=True)
        return x * torch.where(size > bound, bound / (size + 1e-7), 1.0)


@_by_parts("ldexp")
def ldexp(call: Call) -> Tensor:
    """Compute x 2ⁿ."""
    x, exponent = call.bind("input", "other")
    with call.mode:
        return x * torch.pow(2.0, exponent)


@_by_parts("float_power")
def float_power(call: Call) -> Tensor:
    """Compute xⁿ in float64, or in complex128."""
    tensors = [each for each in call.args if isinstance(each, Tensor)]
    turns = any(isinstance(each, complex) for each in call.args) or any(each.is_complex() for each in tensors)
    wide = torch.complex128 if turns else torch.float64
    with call.mode:
        base, exponent = (each.to(wide) if isinstance(each, Tensor) else each for each in call.args)
        return torch.pow(base, exponent)


@_by_parts("copysign")
def copysign(call: Call) -> Tensor:
    """Choose between |x| and -|x| by the sign of another number."""
    x, other = call.args
    with call.mode:
        size = torch.abs(x)
        if not isinstance(other, Tensor):
            return size if math.copysign(1.0, other) > 0 else -size
        return torch.where(torch.signbit(other), -size, size)
