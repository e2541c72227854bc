"""The tokens of an argument that a recurrent network read, by sequence and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

__all__ = ["Trace", "Traces", "read_from_end", "read_one_text", "read_the_same", "steps_of_argument", "traces_of_rows"]

Lists = tuple[tuple[tuple[int, ...], ...], ...]
"""Numbers by sequence and position: several where one position reads several tokens side by side."""


@dataclass(frozen=True)
class Trace:
    """The tokens of one argument that a network read, by sequence and position."""

    ids: Lists | None
    """The argument's ids, and the ids that the model made itself; None for an argument of vectors."""
    places: Lists
    """The flat indices in the argument; -1 for what the model put in itself."""
    given: Tensor
    """The argument's ids; of an argument of vectors, 0 where a vector is zero and 1 elsewhere."""
    padding: int
    """The id of padding."""
    joins_others: bool = False
    """Whether a step that reads none of these tokens reads one of another argument or table."""
    alone: tuple[Trace, ...] = ()
    """Of several arguments, joined, what each by itself is a trace of: words may be those of one of them."""


@dataclass(frozen=True)
class Traces:
    """The traces of all arguments that every position reads a token of, the likeliest text first."""

    found: tuple[Trace, ...]
    looked_up: bool
    """Whether ids of the arguments were looked up that may name the steps."""
    mixed: bool = False
    """Whether tokens or vectors are read, and none of them by one position alone."""

    @property
    def reads_ids(self) -> bool:
        """Whether the likeliest text is one of ids."""
        return bool(self.found) and self.found[0].ids is not None

    def that_names(self, row: int) -> Trace:
        """Return the trace that names the steps of a sequence to which nobody gave words: the likeliest text.

        Where all steps read one id of it, as the number of a shop, and a number each, it is the trace of the numbers.
        """
        text = self.found[0]
        ids = [each for each in text.ids[row] if each] if text.ids is not None else []
        if len(ids) < 2 or len(set(ids)) > 1:
            return text
        return next((each for each in self.found if each.ids is None and all(each.places[row])), text)

    def word_count(self, positions: int) -> int | None:
        """Return how many words a sequence of so many positions takes: None if it reads ids, which the words must fit.

        One that reads vectors of an argument has a word for each step; one that reads states alone has no words.
        """
        if self.reads_ids:
            return None
        return positions if self.found else 0

    @property
    def of_tokens(self) -> Traces:
        """The traces of tokens, without those of ids that the model made: words name tokens."""
        return replace(
            self, found=tuple(t for t in self.found if any(p >= 0 for each in t.places for s in each for p in s))
        )


def traces_of_rows(known: Mapping[int, Traces]) -> Traces | None:
    """Join the traces of sequences, by number, that were not traced together; None unless all are of one argument."""
    found = []
    for parts in zip(*(each.found for each in known.values()), strict=False):
        first = parts[0]
        if any(each.given is not first.given or (each.ids is None) != (first.ids is None) for each in parts):
            return None
        of_row = dict(zip(known, parts, strict=True))
        numbers = range(len(first.places))
        places = tuple(of_row[row].places[row] if row in of_row else () for row in numbers)
        ids = None
        if first.ids is not None:
            ids = tuple((of_row[row].ids or ())[row] if row in of_row else () for row in numbers)
        joins = any(each.joins_others for each in parts)
        found.append(replace(first, ids=ids, places=places, joins_others=joins, alone=()))
    return Traces(tuple(found), any(each.looked_up for each in known.values())) if found else None


def read_the_same(traces: Sequence[tuple[Traces, int]]) -> bool:
    """Tell whether sequences, each a row of its line, read the same ids at the same places of an argument.

    Sequences that read no ids, as those of a layer above, have no words and do not count.
    """
    read = _of_ids(traces)
    places = [{place for step in trace.places[row] for place in step if place >= 0} for trace, row in read]
    given = [trace.given for trace, _ in read]
    return bool(read) and all(places[0] == p and torch.equal(given[0], g) for p, g in zip(places, given, strict=True))


def read_one_text(traces: Sequence[tuple[Traces, int]]) -> bool:
    """Tell whether sequences read the same tokens of one argument, and not those of two that are alike."""
    return read_the_same(traces) and len({id(trace.given) for trace, _ in _of_ids(traces)}) == 1


def read_from_end(traces: Traces, row: int) -> bool:
    """Tell whether a sequence reads the tokens of its argument from the last to the first."""
    if not traces.reads_ids:
        return False
    firsts = [min(step) for step in traces.found[0].places[row] if min(step, default=-1) >= 0]
    return len(firsts) > 1 and all(later < earlier for earlier, later in pairwise(firsts))


def _of_ids(traces: Sequence[tuple[Traces, int]]) -> list[tuple[Trace, int]]:
    return [(each.found[0], row) for each, row in traces if each.reads_ids]


def steps_of_argument(trace: Trace, row: int) -> tuple[list[int], int] | None:
    """Return which step of the argument each position of a sequence reads, and how many steps the argument has.

    A sequence may begin in the middle of its argument, as after the end of an episode. None if no one axis of the
    argument tells its positions apart.
    """
    places = trace.places[row]
    if len(places) < 2 or any(place < 0 for step in places for place in step):
        return None
    found = []
    for axis, size in enumerate(trace.given.shape):
        stride = trace.given.shape[axis + 1 :].numel()
        steps = [{place // stride % size for place in step} for step in places]
        if all(len(step) == 1 for step in steps):
            along = [next(iter(step)) for step in steps]
            if len(set(along)) == len(along):
                found.append((along, size))
    return found[0] if len(found) == 1 else None
