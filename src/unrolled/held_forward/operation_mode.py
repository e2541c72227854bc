"""A mode of torch that meets every operation of a run, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.overrides import TorchFunctionMode

from unrolled.held_forward.positional_operands import with_positions

__all__ = ["OperationMode"]


class OperationMode(TorchFunctionMode):
    """Meets every operation by its method :meth:`run_operation`, with operands that a call names at their positions."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self.run_operation(func, *with_positions(func, args, kwargs or {}))

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run one operation; here as it is."""
        return func(*args, **options)
