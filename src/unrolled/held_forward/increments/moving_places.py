"""Places of entries that the state changes: for each, a block of increments of which entry it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from torch import Tensor

__all__ = ["MovingPlaces"]


class MovingPlaces:
    """For a tensor of whole numbers that the state changes, a block that is one at the entry it names, else zero.

    Args:
        make: Makes the block, of the tensor's shape and an axis of entries. It is made when an operation reads it.
        size: Number of entries.
    """

    def __init__(self, make: Callable[[], Tensor], size: int) -> None:
        self._make, self.size = make, size

    @cached_property
    def one_hot(self) -> Tensor:
        """The block."""
        return self._make()
