"""Numbers that change the states between calls of a network, as times over which a model integrates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.explanation.strands.recorded_model import RecordedModel
from unrolled.explanation.strands.strand import Strand, strands_read
from unrolled.held_forward.recorded_maps import random_like
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["note_numbers_between_calls"]


def note_numbers_between_calls(mode: RecordedModel) -> tuple[str, ...]:
    """Note where the n-grams of a run, whose numbers are sources, have what numbers between the calls contribute.

    Args:
        mode: Has recorded the strands of the run.
    """
    rows = [row for row in mode.rows.rows if row.kind == "feature"]
    continued: dict[str, list[Tensor]] = {}
    for place, strand in enumerate(mode.strands):
        if _continues(strand, mode.strands[:place]):
            continued.setdefault(strand.network, []).append(strand.start)
    changed = {network: _read(starts, rows) for network, starts in continued.items()}
    return tuple(
        f"numbers of argument {', '.join(names)} change the states between the calls of {network or 'the model'}; "
        "what they contribute is in the n-grams and the biases that they multiply, or among the constants; "
        "unrolled.account shows it by number"
        for network, names in changed.items()
        if names
    )


def _continues(strand: Strand, earlier: Sequence[Strand]) -> bool:
    """Whether an initial state is made of the states of earlier calls of its network."""
    return strand.before is not None or any(
        each.network == strand.network for each in strands_read(strand.start, earlier)
    )


def _read(starts: Sequence[Tensor], rows: Sequence[Row]) -> list[str]:
    """Name the arguments whose numbers contribute to initial states."""
    made = [start for start in starts if start.requires_grad]
    if not made or not rows:
        return []
    weights = [random_like(start, seed) for seed, start in enumerate(made)]  # others each: differences of times cancel
    found = torch.autograd.grad(made, [row.leaf for row in rows], weights, retain_graph=True, allow_unused=True)
    return [
        row.name
        for row, gradient in zip(rows, found, strict=True)
        if gradient is not None and bool((gradient * row.leaf.detach()).any())
    ]
