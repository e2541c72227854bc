"""The target of an explanation as a function of the states of the recurrent network, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from unrolled.explanation.example_of_sequence import (
    complete_examples,
    example_of_sequence,
    other_states,
    weighed_sums,
)
from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.held_forward.operations.coarsest_type import coarsest_type, with_type_of_value
from unrolled.held_forward.operations.operation_mode import OperationMode

__all__ = ["Run", "coarsest_on_the_way", "complete_by_states", "function_of_states", "gradients"]

Run = Callable[[tuple[Tensor, ...]], tuple[Tensor, tuple[Tensor, ...]]]
"""From the states of each direction to F of every example, and those states as leaves of the graph."""


def function_of_states(recorded: RecordedForward, target: Target) -> Run:
    """Return the function of the states of a recorded network that runs the model around it."""
    batch = recorded.opened.lengths.shape[0]

    def run(given: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        with torch.enable_grad():
            leaves = tuple(s.detach().requires_grad_() for s in given)
            return select_target(recorded.replay(leaves), target, batch), leaves

    return run


class _Types(OperationMode):
    """Finds the type of least precision among the results of operations on the states."""

    def __init__(self) -> None:
        super().__init__()
        self.coarsest = torch.float64

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        result = super().run_operation(func, args, options)
        self.coarsest = with_type_of_value(self.coarsest, result)
        return result


def coarsest_on_the_way(run: Run, states: tuple[Tensor, ...]) -> torch.dtype:
    """Return the type of least precision from the states to F: no sum of gradients is closer to F."""
    with _Types() as seen:
        run(states)
    return coarsest_type((seen.coarsest, *(each.dtype for each in states)))


def complete_by_states(found: Tensor, run: Run, states: tuple[Tensor, ...], coarsest: torch.dtype) -> Tensor:
    """Find the examples of sequences that are unknown, -1, by the gradients at the states and at other ones.

    Raises:
        UsageError: If an example reads the states of another, or what it reads could not be found out.
    """
    batch = len(found)
    rows = [torch.arange(batch, device="cpu")] * len(states)

    def examples(given: tuple[Tensor, ...]) -> Tensor:
        value, leaves = run(given)
        with torch.enable_grad():
            sums = weighed_sums(value, coarsest)
        passes = [gradients(each, leaves) for each in sums]
        return example_of_sequence(passes, rows, batch, batch, coarsest).to(found.device)

    others = (tuple(map(change, states)) for change in other_states())
    return complete_examples(found, (examples(given) for given in chain([states], others)))


def gradients(value: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
    """Differentiate Σ F by the states; None for states that no gradient reaches."""
    if not value.requires_grad:
        return (None,) * len(leaves)
    with torch.enable_grad():
        return torch.autograd.grad(value.sum(), leaves, allow_unused=True, retain_graph=True)
