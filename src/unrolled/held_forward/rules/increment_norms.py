"""How norms, deviations and normalisations act on blocks of increments: each is computed by its parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import IncrementCall, increment_rule
from unrolled.held_forward.operations.operation_call import axes_of

__all__: list[str] = []


@increment_rule("norm", "linalg_vector_norm", "linalg_norm", "frobenius_norm")
def norm(call: IncrementCall) -> Tensor:
    """Compute the root of the sum of powers, or the largest size."""
    given = call.named("input", *() if call.name == "frobenius_norm" else ("p",), "dim", "keepdim")
    x = call.args[0]
    order, dim, keep = given.get("p", given.get("ord")), given.get("dim"), bool(given.get("keepdim"))
    dims = axes_of(dim, x.dim())
    if order in (None, "fro"):
        order = 2
    elif isinstance(order, str) or order == 0 or (call.name == "linalg_norm" and len(dims) > 1):
        raise UnsupportedOperationError(f"{call.name} of order {order} of a matrix has no rule for increments")
    with call.mode:
        if order == 2:
            return (x * x).sum(dims, keepdim=keep).sqrt()
        if order in (torch.inf, -torch.inf):
            return x.abs().amax(dims, keepdim=keep) if order > 0 else x.abs().amin(dims, keepdim=keep)
        return x.abs().pow(order).sum(dims, keepdim=keep).pow(1 / order)


@increment_rule("polar")
def polar(call: IncrementCall) -> Tensor:
    """Compute r cos θ + i r sin θ."""
    size, angle = call.args
    with call.mode:
        return torch.complex(size * torch.cos(angle), size * torch.sin(angle))


@increment_rule("var", "std", "var_mean", "std_mean")
def deviation(call: IncrementCall) -> Any:
    """Compute the mean square of what is left without the mean, and its root for a deviation."""
    x, dim, unbiased, correction, keep = call.bind("input", "dim", "unbiased", "correction", "keepdim")
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    dims = axes_of(dim, x.dim())
    less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    with call.mode:
        mean = x.mean(dims, keepdim=True)
        squares = (x - mean).square().sum(dims, keepdim=bool(keep))
        count = call.mode.point(x)[1].numel() // max(1, call.mode.point(mean)[1].numel())
        found = squares / max(0, count - less)
        found = found.sqrt() if call.name.startswith("std") else found
        return (found, x.mean(dims, keepdim=bool(keep))) if call.name.endswith("mean") else found


@increment_rule("cosine_similarity")
def cosine_similarity(call: IncrementCall) -> Tensor:
    """Divide x · y by both norms."""
    x, y, dim, eps = call.bind("x1", "x2", "dim", "eps")
    dim, least = 1 if dim is None else dim, 1e-8 if eps is None else eps
    with call.mode:
        x, y = (each / each.norm(dim=dim, keepdim=True).clamp_min(least) for each in (x, y))
        return (x * y).sum(dim)


@increment_rule("layer_norm")
def layer_norm(call: IncrementCall) -> Tensor:
    """Divide by the root mean square of the features, less their mean."""
    z, shape, weight, bias, eps = call.bind("input", "normalized_shape", "weight", "bias", "eps")
    dims = tuple(range(-len(shape), 0))
    with call.mode:
        result = _over_root_mean_square(z - z.mean(dims, keepdim=True), dims, 1e-5 if eps is None else eps)
        return _affine(result, weight, bias)


@increment_rule("rms_norm")
def rms_norm(call: IncrementCall) -> Tensor:
    """Divide by the root mean square of the features."""
    z, shape, weight, eps = call.bind("input", "normalized_shape", "weight", "eps")
    with call.mode:
        least = torch.finfo(z.dtype).eps if eps is None else eps
        return _affine(_over_root_mean_square(z, tuple(range(-len(shape), 0)), least), weight, None)


def _over_root_mean_square(z: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    variance = (z * z).mean(dims, keepdim=True)
    return z / torch.sqrt(variance + eps)


def _affine(result: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Apply the weight and the bias of a layer."""
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@increment_rule("batch_norm")
def batch_norm(call: IncrementCall) -> Tensor:
    """Normalise by running statistics, which is an affine function."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
    x, mean, variance, weight, bias, training, _, eps = call.bind(*names)
    if training or mean is None:
        raise UnsupportedOperationError("batch normalisation uses the statistics of the batch")
    with call.mode:
        shape = (1, -1, *[1] * (x.dim() - 2))
        scale = torch.rsqrt(variance.reshape(shape) + (1e-5 if eps is None else eps))
        layer = (None if each is None else each.reshape(shape) for each in (weight, bias))
        return _affine((x - mean.reshape(shape)) * scale, *layer)
