"""What a run notes of its tensors, by the tensor itself and for as long as it lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, overload
from weakref import ref

from torch import Tensor
from torch.utils.weak import WeakIdRef

__all__ = ["TensorNotes"]

V = TypeVar("V")
D = TypeVar("D")


class TensorNotes(Generic[V]):
    """A dictionary by the identity of tensors; an entry ends with its tensor.

    Every operation of a run asks several of these, so a look-up makes no reference:
    :class:`torch.utils.weak.WeakTensorKeyDictionary`, which does, took a fifth of the time of a run. Two tensors that
    live at once have different ids, and an entry is gone before the id of its tensor can be another one's.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[V, WeakIdRef]] = {}
        this = ref(self)  # a tensor that outlives these notes does not keep them

        def forget(key: WeakIdRef) -> None:
            notes = this()
            if notes is not None:
                notes._entries.pop(hash(key), None)

        self._forget = forget

    def __contains__(self, tensor: object) -> bool:
        return id(tensor) in self._entries

    def __getitem__(self, tensor: Tensor) -> V:
        return self._entries[id(tensor)][0]

    def __setitem__(self, tensor: Tensor, value: V) -> None:
        entry = self._entries.get(id(tensor))
        self._entries[id(tensor)] = (value, WeakIdRef(tensor, self._forget) if entry is None else entry[1])

    def __iter__(self) -> Iterator[Tensor]:
        tensors = [key() for _, key in list(self._entries.values())]
        return (each for each in tensors if each is not None)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def get(self, tensor: object) -> V | None: ...
    @overload
    def get(self, tensor: object, default: D) -> V | D: ...
    def get(self, tensor: object, default: Any = None) -> Any:
        """Return what is noted of a tensor, or the default."""
        entry = self._entries.get(id(tensor))
        return default if entry is None else entry[0]

    def pop(self, tensor: Tensor, default: Any = None) -> Any:
        """Forget what is noted of a tensor and return it, or the default."""
        entry = self._entries.pop(id(tensor), None)
        return default if entry is None else entry[0]
