"""Names for the sequences of a joint explanation, and for their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch

from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.explanation.strands.lines import Line
from unrolled.explanation.tokens.token_names import (
    OWN_VECTOR,
    TOKENS_NOT_FOUND,
    Tokens,
    are_forward,
    checked_words,
    of_one_argument,
    padded_words,
    without_padding,
    word_rows,
    words_around_padding,
    words_at,
    words_by_step,
)
from unrolled.explanation.tokens.traces import Trace, Traces, steps_of_argument

__all__ = ["NamedTokens", "Words", "given_words", "line_titles", "tokens_of_sequence", "words_for_one_sequence"]

Words = Sequence[str] | Sequence[Sequence[str]] | Mapping[str, object] | None
"""Words of one sequence, of several in order, or by the names of sequences."""


class NamedTokens(NamedTuple):
    """The names of the tokens of one sequence, in the order in which they are read."""

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What is not known of them."""


def line_titles(lines: Sequence[Line]) -> list[str]:
    """Name each line by its networks and, where they make several lines, by its number from 0."""
    networks = [line.network or "the model" for line in lines]
    return [
        name if networks.count(name) == 1 else f"{name}, call {networks[:place].count(name)}"
        for place, name in enumerate(networks)
    ]


def words_for_one_sequence(given: Words) -> Tokens:
    """Return words that were given for one sequence, or for one of each example."""
    if isinstance(given, Mapping):
        raise UsageError(f"tokens names {', '.join(map(repr, given))}; the output is made of one sequence: pass a list")
    return given


def given_words(
    tokens: Words, names: Sequence[Sequence[str]], one_text: Sequence[bool], counts: Sequence[Sequence[int | None]]
) -> list[list[object]]:
    """Sort the words that were given by example and sequence.

    Args:
        tokens: The words, as the user gave them.
        names: The names of the sequences that each example reads.
        one_text: Whether the sequences of each example read the same ids, as both directions of a text do.
        counts: How many words of the one text each of these sequences has, as :meth:`Traces.word_count` says.

    Raises:
        ShapeError: If they are of another number of examples or sequences.
        UsageError: If they are given to a sequence that no example reads.
    """
    if tokens is None:
        return [[None] * len(each) for each in names]
    if isinstance(tokens, Mapping):
        known = dict.fromkeys(name for each in names for name in each)
        for key in tokens:
            if key not in known:
                raise UsageError(f"tokens names {key!r}; expected names of sequences: {', '.join(known)}")
        return [[_of_example(tokens.get(name), b, len(names)) for name in each] for b, each in enumerate(names)]
    rows: list[object] = checked_words(tokens) or []
    nested = all(isinstance(row, list | tuple) for row in rows)
    if len(names) == 1 and len(rows) == len(names[0]) > 1 and nested:
        return [rows]
    if all(len(each) == 1 or same for each, same in zip(names, one_text, strict=True)):
        return [
            [row if len(each) == 1 or count in (None, len(row)) else None for count in each]
            for row, each in zip(word_rows(tokens, len(names)), counts, strict=True)
        ]
    kind = "texts" if nested else "words"
    raise ShapeError(
        f"tokens are {len(rows)} {kind}; expected words for each sequence: tokens={{{names[0][0]!r}: [...], …}}, with "
        f"the names {', '.join(names[0])}"
    )


def _of_example(words: object, example: int, batch: int) -> object:
    """Return one example's words, where each example has its own."""
    if isinstance(words, list | tuple) and words and isinstance(words[0], list | tuple):
        if len(words) != batch:
            raise ShapeError(f"tokens are those of {len(words)} examples; expected {batch}")
        return words[example]
    return words


def tokens_of_sequence(given: object, name: str, count: int, row: int, traces: Traces) -> NamedTokens:
    """Name the tokens of one sequence: as given, else by their ids, else by number.

    Args:
        given: The words, in the order of the model's argument; None for none.
        name: Name of the sequence.
        count: Number of its positions.
        row: Its number in its line.
        traces: Which tokens the line read.

    Raises:
        ShapeError: If the number of the words does not fit.
        UsageError: If they are no list.
    """
    numbered = _numbered(count, row, traces)
    if given is None:
        unknown = traces.looked_up and not traces.found
        notes = (f"{TOKENS_NOT_FOUND}; positions are numbered",) if unknown else ()
        return NamedTokens(numbered, (*notes, *_partly(traces.found[:1], row)))
    if not isinstance(given, list | tuple):
        raise UsageError(f"the tokens of {name} are {kind_of(given)}; expected a list of words")
    words = [str(each) for each in given]
    for trace in traces.found:
        if len(words) == count and _is_first_input(trace):
            continue
        named = of_one_argument(trace, lambda each: _placed(words, row, each))
        if named is not None:
            return NamedTokens(named, _partly([trace], row))
    if len(words) != count:
        raise ShapeError(f"{len(words)} tokens for {name or 'a sequence'} of {count} positions; expected as many")
    if any(are_forward(trace.places[row]) for trace in traces.found):
        return NamedTokens(tuple(words))
    if traces.found or traces.looked_up:
        return NamedTokens(numbered, (f"{TOKENS_NOT_FOUND}; the tokens that were given are not shown",))
    note = (f"{TOKENS_NOT_FOUND}; tokens are named in the order in which they were given",) if traces.mixed else ()
    return NamedTokens(tuple(words), note)


def _partly(traces: Sequence[Trace], row: int) -> tuple[str, ...]:
    """Note that some positions are numbered, beside others that have the names of one argument."""
    partly = any(trace.ids is not None and trace.joins_others and not all(trace.ids[row]) for trace in traces)
    return ("positions that read tokens of another argument or table are numbered",) if partly else ()


def _numbered(count: int, row: int, traces: Traces) -> tuple[str, ...]:
    """Name positions by the ids that they read, those of vectors by the places of these, else by number."""
    plain = tuple(f"x{t}" for t in range(count))
    if not traces.found or (traces.found[0].ids is None and traces.looked_up):
        return plain
    trace = traces.that_names(row)
    if trace.ids is not None:
        nothing = plain if trace.joins_others else [OWN_VECTOR] * count
        return tuple(" ".join(map(str, each)) or other for each, other in zip(trace.ids[row], nothing, strict=True))
    steps = steps_of_argument(trace, row)
    order = _order_of_steps(trace.places[row]) if steps is None else steps[0]
    return plain if order is None else tuple(f"x{k}" for k in order)


def _order_of_steps(steps: Sequence[Sequence[int]]) -> list[int] | None:
    """Rank the positions of a sequence by where their vectors stand in the argument; None if that is no order."""
    # it is none where a position reads no vector, or where the vectors of one stand between those of another
    if not all(steps):
        return None
    ends = sorted((min(step), max(step), t) for t, step in enumerate(steps))
    if any(one[1] >= other[0] for one, other in pairwise(ends)):
        return None
    order = [0] * len(steps)
    for rank, (_, _, t) in enumerate(ends):
        order[t] = rank
    return order


def _placed(words: Sequence[str], row: int, trace: Trace) -> tuple[str, ...] | None:
    """Name the positions of a sequence by words, in the order of an argument; None if their number does not fit it."""
    # there is a word for each token that the sequence reads, or for each of the part of the argument that it reads from
    steps = trace.places[row]
    order = _order_of_steps(steps) if trace.ids is None else None
    if order is not None and len(order) == len(words):
        return tuple(words[k] for k in order)
    by_step = words_by_step(words, trace, row)
    if by_step is not None:
        return by_step
    read = sorted({place for step in steps for place in step if place >= 0})
    if not read:
        return None
    found = [dict(zip(read, words, strict=True))] if len(read) == len(words) else _by_part(words, read, trace)
    if not found and trace.alone and len(read := without_padding(read, trace)) == len(words):
        found = [dict(zip(read, words, strict=True))]
    named = {words_at(word, trace, row) for word in found}
    return named.pop() if len(named) == 1 else None


def _is_first_input(trace: Trace) -> bool:
    """Tell whether sequences read vectors of an argument at the first position alone, as those of a decoder may do.

    Where one of them reads more, those that read one vector are padded behind it.
    """
    several = [row for row in trace.places if len(row) > 1 and any(row)]
    return trace.ids is None and bool(several) and all(row[0] and not any(row[1:]) for row in several)


def _by_part(words: Sequence[str], read: Sequence[int], trace: Trace) -> list[dict[int, str]]:
    """Give words to the entries of every row, of any axis, of an argument that holds all places that are read."""
    shape, given = trace.given.shape, trace.given.reshape(-1).tolist()
    flat = torch.arange(trace.given.numel(), device="cpu").view(shape)
    parts = [part for axis in range(len(shape)) for part in flat.movedim(axis, -1).reshape(-1, shape[axis]).tolist()]
    found, inside, wanted = [], [], set(read)
    for part in parts:
        if wanted <= set(part):
            free = {k for k, place in enumerate(part) if place not in wanted or given[place] == trace.padding}
            padded = padded_words(list(words), len(part), free)
            if padded is not None:
                found.append(dict(zip(part, padded, strict=True)))
            elif not trace.alone:
                padding = {k for k, place in enumerate(part) if given[place] == trace.padding}
                around = words_around_padding(words, len(part), padding)
                inside += [] if around is None else [dict(zip(part, around, strict=True))]
    return found or inside
