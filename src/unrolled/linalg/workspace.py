"""Reusable memory for a sweep, which needs the same large arrays at every step.

The operating system maps a new array of several megabytes page by page, and unmaps it when it is freed. Over a sweep
this costs as much time as the element-wise work, so a sweep keeps its arrays.
"""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ["Workspace"]


class Workspace:
    """Named arrays, each as large as the largest request so far."""

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return an uninitialised, contiguous array with the type and device of ``like``.

        The next call with the same name returns the same memory.
        """
        count = math.prod(shape)
        held = self._arrays.get(name)
        if held is None or held.numel() < count:
            # twice the request: blocks grow by one column a step
            held = self._arrays[name] = like.new_empty(2 * count)
        return held[:count].view(shape)
