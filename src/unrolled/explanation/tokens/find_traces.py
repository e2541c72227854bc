"""Which token of which argument each step reads, from a run that has followed ids until they are looked up.

From the lookup on, the gradient tells which step reads a vector. Weighed by the numbers of the steps, it is that number
times the plain gradient. A vector that several steps read has no such number, unless every vector is read as often and
no step reads two: what mixes tokens has no order of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from unrolled.explanation.tokens.tracer import TokenSource, Tracer
from unrolled.explanation.tokens.traces import Trace, Traces
from unrolled.explanation.tokens.vectors_read import where_read, where_read_in_rounds, with_missing

__all__ = ["FoundTraces"]

Member = tuple[TokenSource, Tensor | None]
"""A source, and where it is read, as :func:`~unrolled.explanation.tokens.vectors_read.where_read` says it."""
Step = tuple[tuple[int, int], ...]
"""The tokens that a step reads side by side: the place of each in its argument, and its id."""
Steps = tuple[tuple[Step, ...], ...]
"""By sequence and position."""
Key = tuple[object, int]
"""What the sources that are read step by step have in common: an argument, None if it is not known, and a table."""


class FoundTraces:
    """Finds the traces of what some sequences read.

    Args:
        tracer: Has followed the run.
        read: What is read at each step, with its graph, shape (time, batch, input).
        inside: Whether each step belongs to its sequence, shape (time, batch).
    """

    def __init__(self, tracer: Tracer, read: Tensor, inside: Tensor) -> None:
        self._inside = inside
        found = where_read([each.leaf for each in tracer.sources], read, inside)
        where = {k: with_missing(at, tracer.sources[k].leaf, inside) for k, at in found.items()}
        self._sources = [tracer.sources[place] for place in where]
        ids = sum(source.ids.numel() for source in self._sources if source.ids is not None)
        # fewer ids than steps describe the sequences, as the number of a series does
        self._looked_up = ids >= int(inside.sum()) or tracer.met_nothing(int(inside.sum()))
        self._groups: dict[Key, list[Member]] = {}
        for source, positions in zip(self._sources, where.values(), strict=True):
            if read.requires_grad or positions is not None:
                self._groups.setdefault(_key(source), []).append((source, positions))
        for key, members in self._groups.items():
            if all(positions is None for _, positions in members):
                again = where_read_in_rounds([source.leaf for source, _ in members], read, inside)
                if again:
                    self._groups[key] = [(members[k][0], at) for each in again for k, at in each.items()]

    def of_arguments(self) -> Traces:
        """Return the traces of all arguments that every step reads a token of."""
        found = {key: self._trace(key) for key in self._groups if key[0] is not None}
        known = [each for each in found.values() if each is not None]
        joined = _with_columns_joined(known)
        own = [each for each in joined if not _are_mixed(each, joined) and not _are_of_all_steps(each)]
        own.sort(key=_order_of_likelihood)
        describes = bool(known) and all(map(_describes, known)) and len(known) == len(found)
        return Traces(tuple(own), self._looked_up and not describes, mixed=bool(self._sources) and not own)

    def of_made_ids(self) -> Traces | None:
        """Return the trace of ids that the model made in a way that cannot be followed, if it reads one table alone."""
        if len(self._groups) != 1 or next(iter(self._groups))[0] is not None:
            return None
        own = self._trace(next(iter(self._groups)))
        known = own is not None and any(len(set(each)) > 1 for each in own.ids or ())
        return Traces((own,), self._looked_up) if own is not None and known else None

    def of_ids_of_several(self) -> Traces | None:
        """Return the same if the ids were made of those of tokens, by operations of torch."""
        return self.of_made_ids() if all(each.made for each in self._sources) else None

    def _trace(self, key: Key) -> Trace | None:
        """Join the sources of one argument; None if a step reads a mixture of tokens."""
        # steps that read none of the argument read ids that the model made, or no token
        members, made, joins = self._groups[key], (None, key[1]), False
        steps = self._steps(members)
        if steps is None:
            return None
        if key != made and not all(step for each in steps for step in each):
            own = self._steps(self._groups.get(made, []))
            if own is None:
                return None
            steps = tuple(tuple(a or b for a, b in zip(*each, strict=True)) for each in zip(steps, own, strict=True))
            joins = self._reads_others(steps, (key, made))
        for each in steps:
            places = [place for step in each for place in {place for place, _ in step} if place >= 0]
            if any(len(step) > 1 for step in each) and len(places) > len(set(places)):
                return None
        return _trace_of(members[0][0], steps, joins)

    def _reads_others(self, steps: Steps, known: Sequence[Key]) -> bool:
        """Whether a step that reads nothing of some known keys reads ids of another one, or a mixture of them."""
        others = [m for key, each in self._groups.items() if key not in known for m in each if m[0].ids is not None]
        beside = self._steps(others)
        return beside is None or any(
            not a and b for each in zip(steps, beside, strict=True) for a, b in zip(*each, strict=True)
        )

    def _steps(self, members: Sequence[Member]) -> Steps | None:
        """List what the steps of each sequence read of some sources; None if a step reads a mixture."""
        time, batch = self._inside.shape
        found: list[list[list[tuple[int, int]]]] = [[[] for _ in range(time)] for _ in range(batch)]
        for source, where in members:
            if where is None:
                return None
            ids = source.places if source.ids is None else source.ids
            listed = zip(*(each.reshape(-1).tolist() for each in (where, source.places, ids)), strict=True)
            for position, place, number in listed:
                if position >= 0:
                    t, b = divmod(position, batch)
                    found[b][t].append((place, number))
        return tuple(
            tuple(_once(step) for step, belongs in zip(each, own, strict=True) if belongs)
            for each, own in zip(found, self._inside.T.tolist(), strict=True)
        )


def _once(step: Sequence[tuple[int, int]]) -> Step:
    """Name a token of an argument once, be it read by several rows of a table, as a word is by its letters."""
    first: dict[object, tuple[int, int]] = {}
    for k, (place, number) in enumerate(step):
        first.setdefault(place if place >= 0 else (place, k), (place, number))
    return tuple(first.values())


def _key(source: TokenSource) -> Key:
    if source.ids is None:
        return ("vectors", source.vectors), -1
    return id(source.argument) if source.argument.numel() else None, source.table


def _order_of_likelihood(trace: Trace) -> tuple[bool, bool, bool]:
    """Put ids before vectors, those of words before those of a mask or of segments, and words before their letters."""
    if trace.ids is None:
        return True, False, False
    mask = trace.given.numel() > 0 and int(trace.given.max()) <= 1
    return False, mask, any(len(step) > 1 for each in trace.places for step in each)


def _with_columns_joined(known: Sequence[Trace]) -> list[Trace]:
    """Join traces of one argument whose columns have a table each, as hour and weekday, or a word and its tag."""
    arguments = {id(each.given): each.given for each in known if each.ids is not None}
    found = [each for each in known if each.ids is None]
    for given in arguments.values():
        columns = [each for each in known if each.ids is not None and each.given is given]
        joined = _joined(columns) if len(columns) > 1 else None
        found += columns if joined is None else [joined]
    return found


def _joined(columns: Sequence[Trace]) -> Trace | None:
    """Join what each position reads by several tables; None if two positions read one token, or one reads none."""
    ids, places = [], []
    for row in range(len(columns[0].places)):
        read = [zip(each.places[row], (each.ids or ())[row], strict=True) for each in columns]
        steps = [
            sorted({pair for step in of_step for pair in zip(*step, strict=True)})
            for of_step in zip(*read, strict=True)
        ]
        listed = [place for step in steps for place, _ in step]
        if not all(steps) or any(place < 0 for place in listed) or len(set(listed)) < len(listed):
            return None
        places.append(tuple(tuple(place for place, _ in step) for step in steps))
        ids.append(tuple(tuple(number for _, number in step) for step in steps))
    return replace(columns[0], ids=tuple(ids), places=tuple(places))


def _are_mixed(trace: Trace, found: Sequence[Trace]) -> bool:
    """Whether a position also reads other tokens of the same argument."""
    return any(other.given is trace.given and other.places != trace.places for other in found)


def _are_of_all_steps(trace: Trace) -> bool:
    """Whether every step reads the same places, which then describe the sequence and name no step.

    Ids that the model made have no place: in that of a word, if it does not know the word.
    """
    read = [place for each in trace.places for step in each for place in step]
    replaced = len(set(read) - {-1}) + read.count(-1) <= trace.given.numel()
    return any(
        len(each) > 1 and all(places == each[0] for places in each) and not (replaced and each[0] == (-1,))
        for each in trace.places
    )


def _describes(trace: Trace) -> bool:
    """Whether it describes whole sequences: every step reads the same places, and no sequence reads none."""
    reads = (any(place >= 0 for step in each for place in step) for each in trace.places)
    return _are_of_all_steps(trace) and all(reads)


def _trace_of(source: TokenSource, steps: Steps, joins_others: bool) -> Trace:
    """Name what the steps read by the argument of a source: a model may look up other ids than those it was given."""
    given = source.argument.reshape(-1).tolist()
    named = tuple(tuple(tuple(i if p < 0 else given[p] for p, i in step) for step in each) for each in steps)
    ids = None if source.ids is None else named
    places = tuple(tuple(tuple(place for place, _ in step) for step in each) for each in steps)
    alone = []
    for argument, of_joined in source.joined:
        own = {place: k for k, place in enumerate(of_joined.reshape(-1).tolist())}
        of_own = tuple(tuple(tuple(own.get(place, -1) for place in step) for step in each) for each in places)
        alone.append(Trace(ids, of_own, argument, source.padding, joins_others))
    return Trace(ids, places, source.argument, source.padding, joins_others, tuple(alone))
