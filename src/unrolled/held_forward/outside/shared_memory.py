"""Tensors that share memory with value but do not carry it: they were made of it where no mode can see.

``torch.nn.Parameter(h)``, ``h.new(h)`` and storages give a tensor without a history. Used as a constant it would take
the part of what it was made of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operands import carries

__all__ = ["SharedMemory"]


class SharedMemory:
    """The memory of all tensors that carried value in a run."""

    def __init__(self) -> None:
        self._known: dict[int, StorageWeakRef] = {}
        self._detached: dict[int, Tensor] = {}

    def remember(self, value: Any) -> None:
        """Remember the memory of a tensor, or of those in a tuple or list, where they carry value."""
        if isinstance(value, Tensor):
            if carries(value) and value.layout is torch.strided:
                storage = value.untyped_storage()
                if storage._cdata not in self._known:
                    self._known[storage._cdata] = StorageWeakRef(storage)
        elif isinstance(value, tuple | list):
            for each in value:
                self.remember(each)

    def forget(self, tensor: Tensor) -> None:
        """Forget the memory of a tensor whose entries carry no value any more."""
        if tensor.layout is torch.strided:
            self._known.pop(tensor.untyped_storage()._cdata, None)

    def keep(self, value: Tensor) -> None:
        """Keep a tensor that the model detached: a tensor that is made of its memory is read as this one."""
        if value.layout is torch.strided:
            self._detached[value.untyped_storage()._cdata] = value

    def carrying(self, tensor: Tensor, operation: str) -> Tensor:
        """Return the tensor, or the one that carries value in its place.

        Raises:
            UnsupportedOperationError: If it shares memory with value, and no tensor can take its place.
        """
        if tensor.requires_grad or tensor.layout is not torch.strided or not self._known:
            return tensor
        place = tensor.untyped_storage()._cdata
        if place not in self._known or self._known[place].expired():
            return tensor
        kept = self._detached.get(place)
        if kept is not None and _alike(kept, tensor):
            return kept
        raise UnsupportedOperationError(
            f"the model uses a tensor (in {operation}) that was made of the memory of another one, by "
            "torch.nn.Parameter, Tensor.new, a storage or the like, so it cannot be told what it is made of; use the "
            "other tensor itself there, or its detach() or clone()"
        )


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one memory are the same view of it."""
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.storage_offset() == other.storage_offset()
    )
