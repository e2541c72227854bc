"""Norms whose second derivative torch's forward mode computes wrongly, written in operations where it does not.

The derivative of ``layer_norm`` reads the mean and the scale that the kernel returns, and these have no derivative of
their own. So forward mode that is taken twice leaves out how they change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["WrittenNorms"]


class WrittenNorms(TorchFunctionMode):
    """Computes layer and instance norms by operations of their own."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        return _WRITTEN.get(func, func)(*args, **(kwargs or {}))


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
    found, form = _standardised(z, tuple(range(2, z.dim())), eps), (-1, *[1] * (z.dim() - 2))
    found = found if weight is None else found * weight.view(form)
    return found if bias is None else found + bias.view(form)


def _standardised(z: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    apart = z - z.mean(dims, keepdim=True)
    return apart * (apart.square().mean(dims, keepdim=True) + eps).rsqrt()


_WRITTEN: dict[Callable[..., Any], Callable[..., Any]] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.instance_norm: _instance_norm,
}
