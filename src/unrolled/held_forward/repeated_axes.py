"""Tensors that repeat entries along an axis without repeating them in memory."""

from __future__ import annotations

from torch import Tensor

__all__ = ["without_repeats"]


def without_repeats(tensor: Tensor) -> Tensor:
    """Return a tensor whose repeated axes have one entry each, a view."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(axis, 0, min(1, tensor.shape[axis]))
    return tensor
