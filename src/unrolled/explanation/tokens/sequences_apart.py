"""Traces of sequences that read the same tokens, as windows that overlap do: together no gradient tells their steps."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.explanation.tokens.find_traces import FoundTraces
from unrolled.explanation.tokens.tracer import Tracer
from unrolled.explanation.tokens.traces import Traces, traces_of_rows

__all__ = ["traces_apart"]


def traces_apart(together: Traces, tracer: Tracer, read: Tensor, inside: Tensor) -> Traces:
    """Trace the sequences apart if tokens are read, and none of them by one step alone.

    Args:
        together: The traces of all sequences.
        tracer: Has followed the run.
        read: What is read at each step, with its graph, shape (time, batch, input).
        inside: Whether each step belongs to its sequence, shape (time, batch).
    """
    rows = inside.any(dim=0).nonzero()[:, 0].tolist()
    if not together.mixed or len(rows) < 2:
        return together
    numbers = torch.arange(inside.shape[1], device=inside.device)

    def apart(some: list[int]) -> dict[int, Traces] | None:
        """Trace some of the sequences, or both halves of them, in which every other one overlaps less."""
        chosen = torch.isin(numbers, torch.tensor(some, device=inside.device))
        found = FoundTraces(tracer, read, inside & chosen).of_arguments()
        if not found.mixed:
            return dict.fromkeys(some, found)
        halves = [] if len(some) == 1 else [apart(some[::2]), apart(some[1::2])]
        return {row: each for half in halves if half for row, each in half.items()} if halves and all(halves) else None

    known = apart(rows[:1]) and apart(rows)  # what mixes tokens does so in each sequence
    return (known and traces_of_rows(known)) or together
