"""Memory that is used again: a sweep makes the same large arrays at every step.

A fresh array of some megabytes is handed out by the operating system page by page, and given back when it is freed.
Over a sweep that costs as much as the element-wise work itself, so a sweep keeps its arrays.
"""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ["Workspace"]


class Workspace:
    """Named arrays, each as large as it has ever been asked for."""

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Give an array that is not initialised; whoever takes the same name next takes the same memory.

        Args:
            name: which.
            shape: its shape.
            like: a tensor of the wanted type, on the wanted device.

        Returns:
            A contiguous tensor.
        """
        count = math.prod(shape)
        held = self._arrays.get(name)
        if held is None or held.numel() < count:
            # twice the need: blocks grow by a column a step
            held = self._arrays[name] = like.new_empty(2 * count)
        return held[:count].view(shape)
