"""Numbers that change the states between calls of a network, as times over which a model integrates."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.explanation.strands.recorded_model import RecordedModel
from unrolled.explanation.strands.strand import Strand, strands_read
from unrolled.held_forward.recorded_maps import pull_back, random_like
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["note_numbers_between_calls"]


def note_numbers_between_calls(mode: RecordedModel) -> tuple[str, ...]:
    """Note where the n-grams of a run, whose numbers are sources, have what numbers between the calls contribute.

    Args:
        mode: Has recorded the strands of the run.
    """
    rows = [row for row in mode.rows.rows if row.kind == "feature"]
    changed: dict[str, dict[str, None]] = {}  # by network, the names of the arguments in their order
    for strand in mode.strands:
        names = _read_between(strand, mode.strands, rows)
        changed.setdefault(strand.network, {}).update(dict.fromkeys(names))
    return tuple(
        f"numbers of argument {', '.join(names)} change the states between the calls of {network or 'the model'}; "
        "what they contribute is in the n-grams and the biases that they multiply, or among the constants; "
        "unrolled.account shows it by number"
        for network, names in changed.items()
        if names
    )


def _read_between(strand: Strand, strands: Sequence[Strand], rows: Sequence[Row]) -> list[str]:
    """Name the arguments whose numbers contribute to an initial state that is made of the states of earlier calls."""
    earlier = strands[: strands.index(strand)]
    continues = strand.before is not None or any(
        each.network == strand.network for each in strands_read(strand.start, earlier)
    )
    if not continues:
        return []
    found = pull_back(strand.start, [row.leaf for row in rows], random_like(strand.start))
    return [
        row.name
        for row, gradient in zip(rows, found, strict=True)
        if gradient is not None and bool((gradient * row.leaf.detach()).any())
    ]
