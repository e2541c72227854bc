"""Why no gradient flows from a target to the network's states: it jumps, or it leaves torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError, UsageError
from unrolled.explanation.readout.function_of_states import Run, gradients
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.operations.python_values import TO_PYTHON

__all__ = ["NoGradientError", "jumps", "reads_states"]

_JUMPING = frozenset(
    "round floor ceil trunc sign sgn heaviside gt ge lt le eq ne argmax argmin argsort sort topk "
    "bucketize bernoulli multinomial bool long int".split()
)
"""Operations whose results jump."""


class NoGradientError(UsageError):
    """The model computes in a mode of torch in which no gradient flows."""


class _Operations(OperationMode):
    """Collects the names of operations on the states whose results jump, and of those that leave torch."""

    def __init__(self) -> None:
        super().__init__()
        self.jumping: dict[str, None] = {}
        self.leaving: dict[str, None] = {}

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        name = name_of(func).name
        if name in _JUMPING and any(isinstance(each, Tensor) and each.requires_grad for each in args):
            self.jumping[name] = None
        if name in TO_PYTHON and any(isinstance(each, Tensor) and each.is_floating_point() for each in args):
            self.leaving[name.strip("_")] = None  # of a detached tensor, as a rule
        return super().run_operation(func, args, options)


def _operations(run: Run, states: tuple[Tensor, ...]) -> _Operations:
    with _Operations() as seen:
        run(states)
    return seen


def jumps(run: Run, states: tuple[Tensor, ...]) -> UnsupportedOperationError:
    """Return the error for a target that jumps along the line, by the names of what may jump."""
    found = _operations(run, states).jumping
    names = f" ({', '.join(found)})" if found else ""
    return UnsupportedOperationError(
        f"the target jumps between states of zero and the network's own{names}, where no gradient tells what the "
        "states contribute; choose a target before that operation"
    )


def reads_states(run: Run, states: tuple[Tensor, ...], rounding: float) -> bool:
    """Tell whether a target depends on the states, and refuse one that does although no gradient flows to them."""
    value, leaves = run(states)
    if any(g is not None for g in gradients(value, leaves)):
        return True
    without, _ = run(tuple(torch.zeros_like(s) for s in states))
    if bool(((value - without).abs() > rounding * torch.maximum(value.abs(), without.abs())).any()):
        seen = _operations(run, states)
        if seen.jumping:
            raise jumps(run, states)
        if seen.leaving:
            raise UsageError(
                "the target depends on the network's states, but no gradient flows to them: numbers are taken out of "
                f"torch ({', '.join(seen.leaving)}); compute that step with torch operations"
            )
        raise NoGradientError(
            "the target depends on the network's states, but no gradient flows to them (torch.no_grad, "
            "torch.inference_mode or detach behind the network?); expected a readout that can be differentiated"
        )
    return False
