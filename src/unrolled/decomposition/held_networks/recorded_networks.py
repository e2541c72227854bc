"""Record what torch's fused recurrent networks gave in a plain run, so that a held run need not run them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of

__all__ = ["FUSED", "RecordedNetworks"]

FUSED = ("lstm", "gru", "rnn_tanh", "rnn_relu")


class RecordedNetworks(OperationMode):
    """Keeps the outputs of each fused network, in the order of the calls.

    The held run meets the networks in the same order. What is recorded is a proposal: the held run recomputes each
    state from the one before, and runs the network itself where the two differ.
    """

    def __init__(self) -> None:
        super().__init__()
        self._outputs: list[Tensor] = []
        self._next = 0

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation as it is, and keep what a network gave."""
        result = super().run_operation(func, args, options)
        if name_of(func).name in FUSED:
            self._outputs.append(result[0].detach().clone())  # the model may change its own in place
        return result

    def begin(self) -> None:
        """Begin again at the first call."""
        self._next = 0

    def outputs(self, shape: torch.Size, transposed: bool) -> Tensor | None:
        """Return the outputs of the next call.

        Args:
            shape: (time, batch, features), or (tokens, features) of a packed batch.
            transposed: Whether the call had the batch first.

        Returns:
            The outputs in that shape, or None if the plain run had no such call.
        """
        place, self._next = self._next, self._next + 1
        if place >= len(self._outputs):
            return None
        found = self._outputs[place].transpose(0, 1) if transposed else self._outputs[place]
        return found.contiguous() if found.shape == shape else None
