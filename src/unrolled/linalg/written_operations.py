"""Operations whose second derivative torch's forward mode computes wrongly, written in those where it does not.

The derivatives of ``layer_norm`` and of ``solve`` read what their kernels return beside the result, mean and scale or
factors of the matrix, and these have no derivative of their own. Forward mode that is taken twice leaves out how they
change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["WrittenOperations"]


class WrittenOperations(TorchFunctionMode):
    """Computes layer and instance norms by sums, and solutions of linear systems by inverses."""

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


def _solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    inverse = torch.linalg.inv(a)
    if b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1]):  # vectors, as torch takes them
        return (inverse @ b[..., None])[..., 0]
    return inverse @ b if left else b @ inverse


_WRITTEN: dict[Callable[..., Any], Callable[..., Any]] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.instance_norm: _instance_norm,
    torch.linalg.solve: _solve,
}
