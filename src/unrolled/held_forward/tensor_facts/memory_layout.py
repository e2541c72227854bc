"""How the entries of tensors lie in memory: repeated without lying there twice, or as those of another tensor do."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["entries_of_view", "laid_out_as", "without_repeats"]


def without_repeats(tensor: Tensor) -> Tensor:
    """Return a tensor whose repeated axes have one entry each, a view."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(axis, 0, min(1, tensor.shape[axis]))
    return tensor


def laid_out_as(whole: Tensor, value: Tensor) -> Tensor:
    """Copy a value into memory that is laid out as that of another tensor of its shape."""
    return torch.empty_strided(whole.shape, whole.stride(), dtype=value.dtype, device=value.device).copy_(value)


def entries_of_view(laid_out: Tensor, whole: Tensor, view: Tensor) -> Tensor:
    """Take the entries of a tensor, which is laid out as another one, that a view takes of that one."""
    return laid_out.as_strided(view.shape, view.stride(), view.storage_offset() - whole.storage_offset())
