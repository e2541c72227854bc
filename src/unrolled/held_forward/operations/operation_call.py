"""One operation of a run, and what it was called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operation_names import Operation

__all__ = ["OperationCall", "axes_of"]


_WHEREVER: dict[str, Callable[..., Any]] = {"view": Tensor.reshape, "view_as": Tensor.reshape_as}
"""What stands for operations that ask how a tensor lies in memory."""


@dataclass(frozen=True)
class OperationCall:
    """One operation, and what it was called with."""

    function: Callable[..., Any]
    """Computes the operation; a rule is given the plain form, which does not work in place."""
    operation: Operation
    args: tuple[Any, ...]
    """A rule is given them in the order of the plain operation."""
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.operation.name

    def named(self, *names: str) -> dict[str, Any]:
        """Give all arguments by name; the positional ones have these names, in this order."""
        return dict(zip(names, self.args, strict=False)) | self.kwargs

    def bind(self, *names: str) -> list[Any]:
        """Give the arguments of these names, in the order of the operation; None for what was left out."""
        given = self.named(*names)
        return [given.get(name) for name in names]

    def options_beyond(self, *names: str) -> dict[str, Any]:
        """Give the keyword arguments of other names."""
        return {name: value for name, value in self.kwargs.items() if name not in names}

    def mover(self) -> Callable[..., Any] | None:
        """Return what moves tensors as the operation moves its first operand, however they lie in memory.

        None where it reads the bits of that operand as another type.
        """
        if self.name == "view" and any(isinstance(each, torch.dtype) for each in self.args[1:]):
            return None
        return _WHEREVER.get(self.name, self.function)

    def run(self, *args: Any) -> Any:
        """Compute the operation on these arguments, its keyword arguments unchanged."""
        return self.function(*args, **self.kwargs)


def axes_of(dim: Any, count: int) -> tuple[int, ...]:
    """Return the axes that an argument ``dim`` of a tensor of ``count`` axes names: one, several, or None for all."""
    if dim is None:
        return tuple(range(count))
    return (dim,) if isinstance(dim, int) else tuple(dim)
