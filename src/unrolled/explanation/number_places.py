"""Where the numbers of a model's arguments stand: at which step of which example, and as which feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.errors import UsageError
from unrolled.explanation.trace_tokens import Trace, Traces
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.rows import Row

__all__ = ["NoNumbersError", "Numbers", "has_numbers", "not_followed", "numbers_of_traces"]


class NoNumbersError(UsageError):
    """A model reads no numbers step by step, or their contributions are not known; the message says why."""


def not_followed(error: Exception) -> NoNumbersError:
    """Return the error for a model whose numbers cannot be followed to its network."""
    if isinstance(error, NoNumbersError):
        return error
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return NoNumbersError(f"they cannot be followed to the network: {said}")


@dataclass(frozen=True)
class Numbers:
    """The numbers that one example reads, step by step."""

    names: tuple[str, ...]
    values: Tensor
    """Shape (time, features)."""
    scores: Tensor
    """Contribution of each, shape (time, features)."""

    @classmethod
    def mean(cls, members: Sequence[Numbers]) -> Numbers:
        """Average what the members of an expansion say of the same numbers."""
        scores = torch.stack([each.scores for each in members]).mean(dim=0)
        return cls(members[0].names, members[0].values, scores)


def has_numbers(value: Any) -> bool:
    """Tell whether there is a tensor of numbers, with an axis of time, among some arguments."""
    if isinstance(value, PackedSequence):
        value = value.data
    if isinstance(value, Tensor):
        return value.is_floating_point() and value.dim() > 0
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return isinstance(value, tuple | list) and any(map(has_numbers, value))


def numbers_of_traces(
    linear: LinearOutput, rows: Sequence[Row], traces: Traces, order: Sequence[int], lengths: Sequence[int], first: bool
) -> list[Numbers]:
    """Find the numbers of every example that one call reads.

    Args:
        linear: What the call contributes to each example, with the numbers among its leaves.
        rows: The rows that are its leaves.
        traces: Which vectors of which argument each position reads.
        order: The index of the network's sequence that each example reads.
        lengths: Number of positions of each example.
        first: Whether batches of the network are batch first; where sizes do not tell, so are the arguments.

    Raises:
        NoNumbersError: If no argument has a number for each step.
    """
    found: list[list[tuple[str, Tensor, Tensor]]] = [[] for _ in order]
    vectors = -1
    for place, row in enumerate(rows):
        if row.kind != "feature":
            continue
        vectors += row.leaf.dim() > 1
        if linear.gradients[place] is None:
            continue
        scores, values = linear.contributions(place).detach(), row.leaf.detach()
        if not bool(scores.any()):
            continue
        trace = next((t for t in traces.found if row.leaf.dim() > 1 and t.vectors == vectors), None)
        axes = None if trace is not None else _axes(linear, place, lengths, first)
        for b, own in enumerate(found):
            if trace is not None:
                parts = [_traced(trace, order[b], each) for each in (values, scores)]
            else:
                parts = [None if axes is None else _by_axes(each, axes, b, lengths) for each in (values, scores)]
            if parts[0] is not None and parts[1] is not None:
                own.append((row.name, parts[0], parts[1]))
    return [_joined(each) for each in found]


def _traced(trace: Trace, row: int, entries: Tensor) -> Tensor | None:
    """Return the entries that each position of a sequence reads, shape (time, features)."""
    places = trace.places[row]
    counts = {len(each) for each in places}
    if len(counts) != 1:
        return None
    flat = entries.reshape(-1, entries.shape[-1])
    return flat[torch.tensor(places, device=flat.device)].flatten(1)


def _axes(linear: LinearOutput, place: int, lengths: Sequence[int], first: bool) -> tuple[int | None, int] | None:
    """Find the axis that counts examples, None for an argument of one example, and the axis that counts steps."""
    shape, batch, time = linear.leaves[place].shape, len(lengths), max(lengths)
    pairs = [(0, 1), (1, 0)] if first else [(1, 0), (0, 1)]
    pairs += [(a, t) for a in range(len(shape)) for t in range(len(shape)) if a != t]
    fits = [(a, t) for a, t in pairs if max(a, t) < len(shape) and shape[a] == batch and shape[t] == time]
    if batch == 1:
        return fits[0] if fits else (None, shape.index(time)) if time in shape else None
    served = linear.examples(place)
    for a, t in fits if served is not None else ():
        assert served is not None
        numbers = torch.arange(batch, device=served.device).view(-1, *[1] * (served.dim() - 1))
        if bool(((served.movedim(a, 0) == numbers) | (served.movedim(a, 0) < 0)).all()):
            return a, t
    return None


def _by_axes(entries: Tensor, axes: tuple[int | None, int], example: int, lengths: Sequence[int]) -> Tensor:
    """Return the entries of one example, shape (time, features)."""
    a, t = axes
    own = entries.movedim(t, 0) if a is None else entries.movedim((a, t), (0, 1))[example]
    return own.reshape(len(own), -1)[: lengths[example]]


def _joined(parts: Sequence[tuple[str, Tensor, Tensor]]) -> Numbers:
    """Put the features of several arguments side by side."""
    if not parts:
        raise NoNumbersError("no number of an argument reaches the network step by step")
    names = [
        f"feature {k}" if len(parts) == 1 else f"{name}, feature {k}"
        for name, values, _ in parts
        for k in range(values.shape[1])
    ]
    values = torch.cat([values.double().cpu() for _, values, _ in parts], dim=1)
    scores = torch.cat([scores.double().cpu() for _, _, scores in parts], dim=1)
    return Numbers(tuple(names), values, scores)
