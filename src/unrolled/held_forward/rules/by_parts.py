"""Operations that are computed by their parts, in a held run and on blocks of increments alike."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unrolled.held_forward.increments import IncrementCall, increment_rule
from unrolled.held_forward.mode import Held, rule

__all__: list[str] = []

Call = Held | IncrementCall


def _by_parts(*names: str) -> Callable[[Callable[[Call], Tensor]], Callable[[Call], Tensor]]:
    """Register a rule of both kinds of run."""

    def register(function: Callable[[Call], Tensor]) -> Callable[[Call], Tensor]:
        rule(*names)(function)
        increment_rule(*names)(function)
        return function

    return register


@_by_parts("glu")
def glu(call: Call) -> Tensor:
    """Compute a ⊙ σ(b)."""
    x, dim = call.bind("input", "dim")
    with call.mode:
        content, gate = x.chunk(2, -1 if dim is None else dim)
        return content * torch.sigmoid(gate)


@_by_parts("lerp")
def lerp(call: Call) -> Tensor:
    """Compute a + w (b - a): a weight without value is held; one with value is a gate between the two."""
    a, b, weight = call.args
    with call.mode:
        return a + weight * (b - a)


@_by_parts("addcmul", "addcdiv")
def fused(call: Call) -> Tensor:
    """Compute a + s b c, or a + s b / c."""
    a, b, c = call.args
    scale = call.kwargs.get("value", 1)
    with call.mode:
        found = b * c if call.name == "addcmul" else b / c
        return a + (found if scale == 1 else scale * found)


@_by_parts("pairwise_distance")
def pairwise_distance(call: Call) -> Tensor:
    """The norm of a difference, to which torch adds a small number."""
    a, b, p, eps, keep = call.bind("x1", "x2", "p", "eps", "keepdim")
    with call.mode:
        gap = a - b + (1e-6 if eps is None else eps)
        return torch.linalg.vector_norm(gap, 2.0 if p is None else p, dim=-1, keepdim=bool(keep))


@_by_parts("cdist")
def cdist(call: Call) -> Tensor:
    """The norms of all differences of two lists of vectors."""
    a, b, p = call.bind("x1", "x2", "p")
    with call.mode:
        return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), 2.0 if p is None else p, dim=-1)
