"""How the layers that a step may hold act on blocks of increments: each is computed by its parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments import IncrementCall, increment_rule

__all__: list[str] = []


@increment_rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def convolution(call: IncrementCall) -> Tensor:
    """Convolve the increments, and add the bias to what they move around."""
    names = ("input", "weight", "bias")
    x, weight, bias = call.bind(*names)
    options = call.options_beyond(*names)
    if not call.moves(x) or call.moves(weight):
        raise UnsupportedOperationError(f"{call.name} with a kernel that the state makes has no rule for increments")

    def convolved(value: Tensor) -> Tensor:
        found: Tensor = call.function(value, weight, None, *call.args[3:], **options)
        return found

    result = call.mode.follow(convolved(x), *map(convolved, call.mode.point(x)))
    if bias is None:
        return result
    with call.mode:
        return result + bias.reshape(-1, *[1] * (result.dim() - 2))


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
    return z * torch.reciprocal(torch.sqrt(variance + eps))


def _affine(result: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Apply the weight and the bias of a layer."""
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@increment_rule("group_norm")
def group_norm(call: IncrementCall) -> Tensor:
    """Normalise each group of channels as a layer norm does."""
    x, groups, weight, bias, eps = call.bind("input", "num_groups", "weight", "bias", "eps")
    with call.mode:
        parts = x.reshape(x.shape[0], groups, -1)
        result = torch.layer_norm(parts, parts.shape[-1:], eps=1e-5 if eps is None else eps).reshape(x.shape)
        return _affine(result, *_by_channel(x, weight, bias))


@increment_rule("batch_norm")
def batch_norm(call: IncrementCall) -> Tensor:
    """Normalise by running statistics, which is an affine function."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
    x, mean, variance, weight, bias, training, _, eps = call.bind(*names)
    if training or mean is None:
        raise UnsupportedOperationError("batch normalisation uses the statistics of the batch")
    with call.mode:
        mean, variance, weight, bias = _by_channel(x, mean, variance, weight, bias)
        scale = torch.rsqrt(variance + (1e-5 if eps is None else eps))
        return _affine((x - mean) * scale, weight, bias)


def _by_channel(x: Tensor, *values: Tensor | None) -> tuple[Any, ...]:
    """Put the values of channels along the second axis of x."""
    shape = (1, -1, *[1] * (x.dim() - 2))
    return tuple(None if each is None else each.reshape(shape) for each in values)


@increment_rule("pad")
def pad(call: IncrementCall) -> Tensor:
    """Pad the increments with zeros: a number that is put beside them does not move."""
    x, widths, mode = call.bind("input", "pad", "mode")
    mode = mode or "constant"
    block = torch.nn.functional.pad(x, widths, mode)

    def beside_ones(gates: Tensor) -> Tensor:
        return torch.nn.functional.pad(gates, widths, mode, 1.0 if mode == "constant" else None)

    result: Tensor = call.mode.keep_gate(call.mode.keep(block, *call.at_both()), (x,), beside_ones)
    return result


@increment_rule("maximum", "minimum", "max", "min")
def extreme(call: IncrementCall) -> Tensor:
    """Compute max(a, b) = ½ (a + b + |a - b|), and the minimum with the other sign."""
    if len(call.args) != 2 or not isinstance(call.args[1], Tensor) or call.kwargs:
        raise UnsupportedOperationError(f"{call.name} of one tensor has no rule for increments")
    a, b = call.args
    with call.mode:
        apart = 0.5 * (a - b).abs()
        return 0.5 * (a + b) + apart if "max" in call.name else 0.5 * (a + b) - apart


@increment_rule("norm", "linalg_vector_norm")
def norm(call: IncrementCall) -> Tensor:
    """Compute the root of the sum of squares."""
    given = call.named("input", "p", "dim", "keepdim")
    if given.get("p", given.get("ord", 2)) not in (2, 2.0, "fro", None) or given.get("dim") is None:
        raise UnsupportedOperationError(f"{call.name} of another order than 2, or of all numbers, has no rule")
    x = given["input"] if "input" in given else given["x"]
    with call.mode:
        return (x * x).sum(given["dim"], keepdim=bool(given.get("keepdim"))).sqrt()


@increment_rule("setitem")
def setitem(call: IncrementCall) -> Tensor:
    """Write into a block, its base and its end; a constant that is written has no increments."""
    target, index, value = call.args
    block = target.clone() if call.moves(target) else torch.zeros_like(target)
    base, end = (each.clone() for each in call.mode.point(target))
    block[index] = value if call.moves(value) else 0.0
    base[index], end[index] = call.mode.point(value)
    return call.mode.follow(block, base, end)
