"""Normalisations: the centre is linear, the scale is held, weight and bias are the layer's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.rules.product import finite_only

__all__: list[str] = []


def _scaled(call: HeldCall, x: Tensor, axes: tuple[int, ...], eps: float, centred: bool = True) -> Tensor:
    """(x - mean) / √(variance + ε) with the divisor held; steps of NaN, which padding may be, are constants."""
    centre = x - x.mean(axes, keepdim=True) if centred else x
    scale = torch.rsqrt(centre.detach().square().mean(axes, keepdim=True) + eps)
    return finite_only(call, 0, [centre, scale], torch.mul)


def _affine(call: HeldCall, y: Tensor, weight: Tensor | None, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """Apply the layer's weight, and its bias as a row."""
    with call.mode:
        y = y if weight is None else y * weight.reshape(shape)
        return y if bias is None else y + bias.reshape(shape)


@rule("layer_norm")
def layer_norm(call: HeldCall) -> Tensor:
    """Over the last axes."""
    x, shape, weight, bias, eps = call.bind("input", "normalized_shape", "weight", "bias", "eps")
    axes = tuple(range(-len(shape), 0))
    return _affine(call, _scaled(call, x, axes, 1e-5 if eps is None else eps), weight, bias, tuple(shape))


@rule("rms_norm")
def rms_norm(call: HeldCall) -> Tensor:
    """Over the last axes, not centred."""
    x, shape, weight, eps = call.bind("input", "normalized_shape", "weight", "eps")
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    return _affine(call, _scaled(call, x, tuple(range(-len(shape), 0)), eps, centred=False), weight, None, tuple(shape))


@rule("batch_norm", "instance_norm")
def batch_norm(call: HeldCall) -> Tensor:
    """By running statistics, or over each example's own positions; statistics of the batch are refused."""
    x, weight, bias, mean, variance, own, _, eps, *_ = call.args
    shape = (1, -1, *[1] * (x.dim() - 2))
    if call.name == "instance_norm" and own:
        return _affine(call, _scaled(call, x, tuple(range(2, x.dim())), eps), weight, bias, shape)
    if own or mean is None:
        raise UnsupportedOperationError(
            "batch normalisation uses the statistics of the batch, so one example's answer depends on the others; "
            "put the model in evaluation mode"
        )
    scale = torch.rsqrt(variance + eps).reshape(shape)
    centre: Any = -(mean.reshape(shape) * scale)
    call.rows.mark(centre, *call.rows.origin(mean))
    with call.mode:
        y = x * scale + centre
    return _affine(call, y, weight, bias, shape)
