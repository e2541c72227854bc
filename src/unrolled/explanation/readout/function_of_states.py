"""The target of an explanation as a function of the states of the recurrent network, and its gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.targets.select_target import Target, select_target

__all__ = ["Run", "function_of_states", "gradients"]

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


def gradients(value: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
    """Differentiate Σ F by the states; None for states that no gradient reaches."""
    if not value.requires_grad:
        return (None,) * len(leaves)
    with torch.enable_grad():
        return torch.autograd.grad(value.sum(), leaves, allow_unused=True, retain_graph=True)
