"""One operation of a run, as a rule meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unrolled.held_forward.operation_names import Operation

__all__ = ["OperationCall"]


@dataclass(frozen=True)
class OperationCall:
    """One operation, and what it was called with."""

    function: Callable[..., Any]
    """Computes the operation, not in place."""
    operation: Operation
    args: tuple[Any, ...]
    """In the order of the plain operation."""
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

    def run(self, *args: Any) -> Any:
        """Compute the operation on these arguments, its keyword arguments unchanged."""
        return self.function(*args, **self.kwargs)
