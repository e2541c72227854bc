"""A run of a model as it is, with the sources of value of a held run: it shows what an output depends on at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unrolled.held_forward.mode import HeldForward
from unrolled.held_forward.operations.operands import carries, operands
from unrolled.held_forward.operations.operation_names import name_of

__all__ = ["Differentiated"]


class Differentiated(HeldForward):
    """A mode that opens arguments and tokens as rows, and lets autograd follow every operation on them as it is.

    The gradient by a row is then the output's own, not that of a run in which factors are held.
    """

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation on value as it is; ids are followed, and their vectors opened, as in a held run."""
        valued = any(map(carries, operands((*args, *options.values()))))
        if not valued or name_of(func).name in self.begins_value:
            return super().run_operation(func, args, options)
        with torch.enable_grad():
            return func(*args, **options)
