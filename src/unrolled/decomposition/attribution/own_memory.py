"""What a result of one example stores in a file: its own numbers, without those of its batch."""

from __future__ import annotations

from typing import Any

from torch import Tensor

__all__ = ["OwnMemory"]


class OwnMemory:
    """Stores its tensors alone when it is pickled or copied: a part of a batch would bring the whole batch's memory."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: _alone(each) for name, each in vars(self).items()}


def _alone(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _alone(each) for name, each in value.items()}
    shares = isinstance(value, Tensor) and value.untyped_storage().nbytes() > value.nbytes
    return value.clone() if shares else value
