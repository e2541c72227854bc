"""The tokens of an argument that a recurrent network read, by sequence and position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.explanation.tokens.tracer import TokenSource

__all__ = [
    "Member",
    "Trace",
    "Traces",
    "are_mixed",
    "are_of_all_steps",
    "name_steps",
    "order_of_likelihood",
    "reached_sources",
    "steps_read",
    "trace_of",
]

Member = tuple[TokenSource, Tensor | None]
"""A source, and where it is read, as :func:`~unrolled.explanation.tokens.vectors_read.where_read` says it."""
Lists = tuple[tuple[tuple[int, ...], ...], ...]
"""Numbers by sequence and position: several where one position reads several tokens side by side."""
Step = tuple[tuple[int, int], ...]
"""The tokens that a step reads side by side: the place of each in its argument, and its id."""
Steps = tuple[tuple[Step, ...], ...]
"""By sequence and position."""


@dataclass(frozen=True)
class Trace:
    """The tokens of one argument that a network read, by sequence and position."""

    ids: Lists | None
    """The ids that were looked up; None for an argument of vectors."""
    places: Lists
    """The flat indices in the argument; -1 for what the model put in itself."""
    given: Tensor
    """The argument's ids; of an argument of vectors, 0 where a vector is zero and 1 elsewhere."""
    padding: int
    """The id of padding."""
    vectors: int = -1
    """Of an argument of vectors, its number among those; -1 for an argument of ids."""


@dataclass(frozen=True)
class Traces:
    """The traces of all arguments that every position reads a token of, the likeliest text first."""

    found: tuple[Trace, ...]
    looked_up: bool
    """Whether ids of the arguments were looked up that may name the steps."""
    mixed: bool = False
    """Whether tokens or vectors are read, and none of them by one position alone."""


def reached_sources(read: Tensor, sources: Sequence[TokenSource]) -> list[TokenSource]:
    """Leave out the sources that a network does not read; without a gradient all may be read."""
    if not sources or not read.requires_grad:
        return list(sources)
    found = torch.autograd.grad(read.sum(), [each.leaf for each in sources], allow_unused=True, retain_graph=True)
    return [source for source, gradient in zip(sources, found, strict=True) if gradient is not None]


def name_steps(sources: Sequence[TokenSource], inside: Tensor) -> bool:
    """Whether ids may name the steps; fewer ids than steps describe the sequences, as the number of a series does."""
    return sum(source.ids.numel() for source in sources if source.ids is not None) >= int(inside.sum())


def order_of_likelihood(trace: Trace) -> int:
    """Put ids before vectors, and ids of words before those of a mask or of segments."""
    if trace.ids is None:
        return 2
    return int(trace.given.numel() > 0 and int(trace.given.max()) <= 1)


def are_mixed(trace: Trace, found: Sequence[Trace | None]) -> bool:
    """Whether a position also reads other tokens of the same argument."""
    return any(other is not None and other.given is trace.given and other.places != trace.places for other in found)


def are_of_all_steps(trace: Trace) -> bool:
    """Whether every step reads the same places, which then describe the sequence and name no step."""
    return any(len(each) > 1 and all(places == each[0] for places in each) for each in trace.places)


def trace_of(source: TokenSource, steps: Steps) -> Trace:
    """Name what the steps read by the argument of a source."""
    ids = None if source.ids is None else tuple(tuple(tuple(i for _, i in step) for step in each) for each in steps)
    places = tuple(tuple(tuple(place for place, _ in step) for step in each) for each in steps)
    return Trace(ids, places, source.argument, source.padding, source.vectors)


def steps_read(inside: Tensor, members: Sequence[Member]) -> Steps | None:
    """List what the steps of each sequence read of some sources; None if a step reads a mixture."""
    time, batch = inside.shape
    found: list[list[list[tuple[int, int]]]] = [[[] for _ in range(time)] for _ in range(batch)]
    for source, where in members:
        if where is None:
            return None
        ids = source.places if source.ids is None else source.ids
        listed = zip(
            where.reshape(-1).tolist(), source.places.reshape(-1).tolist(), ids.reshape(-1).tolist(), strict=True
        )
        for position, place, number in listed:
            if position >= 0:
                t, b = divmod(position, batch)
                found[b][t].append((place, number))
    return tuple(
        tuple(tuple(step) for step, belongs in zip(each, own, strict=True) if belongs)
        for each, own in zip(found, inside.T.tolist(), strict=True)
    )
