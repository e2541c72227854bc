"""Operations whose derivatives torch's forward mode computes wrongly or not at all, written in those where it does.

The derivatives of ``layer_norm``, ``batch_norm``, ``solve`` and ``det`` read what their kernels return beside the
result: mean and scale, or factors of the matrix. These have no derivative of their own, so forward mode that is taken
twice leaves out how they change.

First derivatives are wrong for ``det`` at singular matrices, for ``cholesky_inverse`` everywhere, and for
``cholesky_solve`` and ``triangular_solve`` where the other triangle is not zero. Second and third derivatives are wrong
for products where factors are zero. ``glu`` has no second derivative; attention and ``cdist`` have no first one. The
derivative of products by ``scatter_reduce``, of Bessel functions and of orthogonal polynomials is zero: they are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, special
from torch._C._functorch import is_batchedtensor
from torch.autograd.forward_ad import unpack_dual

from unrolled.forward_mode.constant_operands import ConstantOperands
from unrolled.forward_mode.determinants import det, logdet, slogdet

__all__ = ["WrittenOperations", "with_written_operations"]


class _SolveEx(NamedTuple):
    result: Tensor
    info: Tensor


class WrittenOperations(ConstantOperands):
    """Computes norms by sums, solutions of linear systems by inverses, determinants by products and sums."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        options = dict(kwargs or {})
        if func not in _WRITTEN or "out" in options:  # torch itself refuses to differentiate what is written to out
            return super().__torch_function__(func, types, args, options)
        with ConstantOperands():
            return _WRITTEN[func](*args, *(options.pop(name) for name in _OPERANDS if name in options), **options)


def with_written_operations(
    step: Callable[..., Tensor], mode: Callable[[], WrittenOperations] = WrittenOperations
) -> Callable[..., Tensor]:
    """Return a step that runs with the operations of this module, under what ``mode`` makes for each run."""

    def run(*given: Tensor) -> Tensor:
        with mode():
            return step(*given)

    return run


def _layer_norm(
    z: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,  # noqa: ARG001  # an argument of torch.layer_norm
) -> Tensor:
    found = _standardised(z, tuple(range(-len(normalized_shape), 0)), eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _instance_norm(
    z: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return F.instance_norm(z, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    return _scaled(_standardised(z, tuple(range(2, z.dim())), eps), weight, bias)


def _batch_norm(
    z: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not training:
        return F.batch_norm(z, running_mean, running_var, weight, bias, training, momentum, eps)
    return _scaled(_standardised(z, (0, *range(2, z.dim())), eps), weight, bias)


def _scaled(z: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Multiply channels, which stand second, and move them."""
    form = (-1, *[1] * (z.dim() - 2))
    z = z if weight is None else z * weight.view(form)
    return z if bias is None else z + bias.view(form)


def _standardised(z: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    wide = z.to(torch.promote_types(z.dtype, torch.float32))  # squares of half precision overflow
    apart = wide - wide.mean(dims, keepdim=True)
    return (apart * (apart.square().mean(dims, keepdim=True) + eps).rsqrt()).to(z.dtype)


def _solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    return _solved(torch.linalg.inv(a), b, left)


def _solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> _SolveEx:
    inverse, info = torch.linalg.inv_ex(a, check_errors=check_errors)
    return _SolveEx(_solved(inverse, b, left), info)


def _solved(inverse: Tensor, b: Tensor, left: bool) -> Tensor:
    if b.dim() == 1 or b.shape == inverse.shape[:-1]:  # vectors, as torch takes them
        return (inverse @ b[..., None])[..., 0]
    return inverse @ b if left else b @ inverse


def _tensorsolve(a: Tensor, b: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    if dims is not None:
        places = [axis % a.dim() for axis in dims]
        a = a.movedim(places, [*range(a.dim() - len(places), a.dim())])
    solution = a.shape[b.dim() :]
    return _solve(a.reshape(b.numel(), -1), b.reshape(-1)).reshape(solution)


def _cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    factor = factor.triu() if upper else factor.tril()
    identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse = torch.linalg.solve_triangular(factor, identity.expand(factor.shape), upper=upper)
    return inverse @ inverse.mH if upper else inverse.mH @ inverse


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    return torch.cholesky_solve(b, factor.triu() if upper else factor.tril(), upper)


def _triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    beside = int(unitriangular)  # the diagonal is not read then
    triangle = a.triu(beside) if upper else a.tril(-beside)
    solved: tuple[Tensor, Tensor] = torch.triangular_solve(b, triangle, upper, transpose, unitriangular)
    return solved


def _prod(z: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    if dim is None:
        z, dim = z.reshape(-1), 0
    if not _has_derivative(z):
        return torch.prod(z, dim, keepdim, dtype=dtype)
    found = _cumprod(z, dim, dtype=dtype).select(dim, -1)
    return found.unsqueeze(dim) if keepdim else found


def _cumprod(z: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if not _has_derivative(z):
        return torch.cumprod(z, dim, dtype=dtype)
    return torch.stack([*accumulate(z.to(dtype or z.dtype).unbind(dim), torch.mul)], dim)


def _cumprod_in_place(z: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return z.copy_(_cumprod(z, dim, dtype=dtype))


def _has_derivative(z: Tensor) -> bool:
    """Tell whether these are factors that have one; products of whole numbers are of another type than they."""
    return z.dim() > 0 and z.numel() > 0 and (z.is_floating_point() or z.is_complex())


def _glu(z: Tensor, dim: int = -1) -> Tensor:
    first, gate = z.chunk(2, dim)
    return first * gate.sigmoid()


def _without_products(scatter_reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(*given: Any, **named: Any) -> Tensor:
        if "prod" in (named.get("reduce"), *given[4:5]) and _is_differentiated(given, named):
            raise _taken_for_zero("scatter_reduce by 'prod'")
        return scatter_reduce(*given, **named)

    return run


def _refused(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(*given: Any, **named: Any) -> Tensor:
        if _is_differentiated(given, named):
            raise _taken_for_zero(name)
        return function(*given, **named)

    return run


def _is_differentiated(given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Tell whether an operand may be none of the constants, whose derivative is zero."""
    return any(
        # vmap hides the tangent
        is_batchedtensor(each) or each.requires_grad or unpack_dual(each).tangent is not None
        for each in (*given, *named.values())
        if isinstance(each, Tensor)
    )


def _taken_for_zero(name: str) -> NotImplementedError:
    return NotImplementedError(f"torch's forward mode takes the derivative of {name} for zero")


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if enable_gqa:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.mT
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        is_choice = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if is_choice else scores + attn_mask
    attends_to_none = (scores == -torch.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(attends_to_none, 0.0).softmax(-1).masked_fill(attends_to_none, 0.0)
    return F.dropout(weights, dropout_p) @ value


def _many_heads(*given: Any, need_weights: bool = True, **named: Any) -> tuple[Tensor, Tensor | None]:
    named["need_weights"] = True  # it computes what it returns by operations that have derivatives
    found, weights = F.multi_head_attention_forward(*given, **named)
    return found, weights if need_weights else None


# how torch computes it changes no number
def _cdist(first: Tensor, second: Tensor, p: float = 2.0, compute_mode: object = None) -> Tensor:  # noqa: ARG001
    return torch.linalg.vector_norm(first[..., :, None, :] - second[..., None, :, :], p, -1)


_WRITTEN: dict[Callable[..., Any], Callable[..., Any]] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.instance_norm: _instance_norm,
    F.batch_norm: _batch_norm,
    torch.linalg.solve: _solve,
    torch.linalg.solve_ex: _solve_ex,
    torch.linalg.tensorsolve: _tensorsolve,
    torch.cholesky_inverse: _cholesky_inverse,
    Tensor.cholesky_inverse: _cholesky_inverse,
    **dict.fromkeys((torch.cholesky_solve, Tensor.cholesky_solve), _cholesky_solve),
    **dict.fromkeys((torch.triangular_solve, Tensor.triangular_solve), _triangular_solve),
    **dict.fromkeys((torch.det, torch.linalg.det, Tensor.det), det),
    **dict.fromkeys((torch.slogdet, torch.linalg.slogdet, Tensor.slogdet), slogdet),
    **dict.fromkeys((torch.logdet, Tensor.logdet), logdet),
    **dict.fromkeys((torch.prod, Tensor.prod), _prod),
    **dict.fromkeys((torch.cumprod, Tensor.cumprod), _cumprod),
    Tensor.cumprod_: _cumprod_in_place,
    F.glu: _glu,
    F.scaled_dot_product_attention: _attention,
    F.multi_head_attention_forward: _many_heads,
    torch.cdist: _cdist,
    **{each: _without_products(each) for each in (torch.scatter_reduce, Tensor.scatter_reduce, Tensor.scatter_reduce_)},
    **{
        each: _refused(name, each)
        for name, each in vars(special).items()
        if re.match(r"airy|.*(bessel|polynomial)_", name)
    },
}
_OPERANDS = ("input", "A", "B", "x1", "x2", "other", "input2")
"""The names of the first arguments of these operations, in their order."""
