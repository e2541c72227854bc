"""Names for the positions of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, TypeVar

import torch

from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.explanation.tokens.traces import Trace, Traces, steps_of_argument

__all__ = [
    "OWN_VECTOR",
    "PADDING_NAME",
    "TOKENS_NOT_FOUND",
    "Tokens",
    "are_forward",
    "checked_words",
    "of_one_argument",
    "padded_words",
    "token_names",
    "without_padding",
    "word_rows",
    "words_around_padding",
    "words_at",
    "words_by_step",
]

Names = TypeVar("Names")
Tokens = Sequence[str] | Sequence[Sequence[str]] | None
"""The words of a sentence, or of each sentence of a batch."""

PADDING_NAME = "‹pad›"
"""The name of a position that holds padding."""

OWN_VECTOR = "‹no token›"
"""The name of a position that reads a vector of the model's own, such as a learned start."""

TOKENS_NOT_FOUND = (
    "which token each position reads could not be found: the model mixes tokens in front of its recurrent network, "
    "joins those of several arguments or tables, or makes ids in a way that cannot be followed"
)


def token_names(
    tokens: Tokens, lengths: Sequence[int], order: Sequence[int], traces: Traces
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Name every position of every example: by its word, else by its token's id, else by number.

    Args:
        tokens: The words, as the user gave them.
        lengths: Number of positions of each example.
        order: The index of the network's sequence that each example reads.
        traces: Which tokens the network read.

    Returns:
        The names, and notes.

    Raises:
        ShapeError: If the number of the words does not fit.
        UsageError: If the words are one string.
    """
    if tokens is None:
        if traces.found and (traces.found[0].ids is not None or not traces.looked_up):
            return [_ids(traces.that_names(row), row) for row in order], ()
        note = (f"{TOKENS_NOT_FOUND}; positions are numbered",) if traces.looked_up else ()
        return [tuple(f"x{t}" for t in range(n)) for n in lengths], note
    rows, traces = word_rows(tokens, len(lengths)), traces.of_tokens
    for trace in traces.found:
        named = of_one_argument(trace, lambda each: _words(rows, order, each))
        if named is not None:
            return named, ()
    for trace in traces.found:
        by_step = [words_by_step(each, trace, row) for each, row in zip(rows, order, strict=True)]
        if None not in by_step:
            return [each for each in by_step if each is not None], ()
    for row, length in zip(rows, lengths, strict=True):
        if len(row) != length:
            count = f"{len(row)} token{'s' if len(row) > 1 else ''}"
            raise ShapeError(f"{count} for a sequence of {length}; expected one for each position that is not padding")
    if traces.found and not any(
        all(are_forward(trace.places[row]) for row in order if any(trace.places[row])) for trace in traces.found
    ):
        numbered = [_ids(traces.found[0], row) for row in order]
        return numbered, (f"{TOKENS_NOT_FOUND}; the tokens that were given are not shown",)
    # without traces, the order is the one that the user gives
    note = (f"{TOKENS_NOT_FOUND}; tokens are named in the order in which they were given",) if not traces.found else ()
    return [tuple(row) for row in rows], note if traces.looked_up else ()


def of_one_argument(trace: Trace, name: Callable[[Trace], Names | None]) -> Names | None:
    """Name positions by the words of all arguments of a trace, else by those of the only one that they fit."""
    whole = name(trace)
    fitting = [] if whole is not None else [named for each in trace.alone if (named := name(each)) is not None]
    return fitting[0] if len(fitting) == 1 else whole


def without_padding(places: Iterable[int], trace: Trace) -> list[int]:
    """Leave out the places of an argument that hold padding."""
    given = trace.given.reshape(-1).tolist()
    return [place for place in places if given[place] != trace.padding]


def checked_words(tokens: object) -> list[Any] | None:
    """Return words as a list, of words or of lists of words; None if there are none.

    Raises:
        ShapeError: If some of them are lists and others are not, or lists of lists.
        UsageError: If they are no list.
    """
    if tokens is None:
        return None
    if isinstance(tokens, str):
        raise UsageError(f"tokens is the string {tokens[:40]!r}; expected a list of words, such as its split()")
    given = tokens.tolist() if hasattr(tokens, "tolist") else tokens  # an array or a tensor
    if isinstance(given, bytes | Mapping | Set) or not isinstance(given, Iterable):
        raise UsageError(f"tokens is {kind_of(tokens)}; expected a list of words, or a list of such lists for a batch")
    words = list(given)
    lists = [isinstance(each, list | tuple) for each in words]
    if any(lists) and not all(lists):
        raise ShapeError("tokens holds both words and lists; expected words, or a list of words for each example")
    if any(isinstance(word, list | tuple) for row in words if isinstance(row, list | tuple) for word in row):
        raise ShapeError("tokens holds lists of lists of lists; expected a list of words for each example")
    return words


def word_rows(tokens: Tokens, examples: int) -> list[list[str]]:
    """Return the words of each example.

    Raises:
        ShapeError: If they are those of another number of examples.
        UsageError: If they are no list.
    """
    given = checked_words(tokens) or []
    nested = bool(given) and isinstance(given[0], list | tuple)
    rows = [list(map(str, row)) for row in given] if nested else [list(map(str, given))]
    if len(rows) != examples and not nested:
        raise ShapeError(f"tokens is one list of words for {examples} examples; expected a list of words for each")
    if len(rows) != examples:
        raise ShapeError(f"tokens are those of {len(rows)} examples; expected {examples}")
    return rows


def words_by_step(words: Sequence[str], trace: Trace, row: int) -> tuple[str, ...] | None:
    """Name the positions of a sequence by words of the steps of its argument; None if these are not so many."""
    found = steps_of_argument(trace, row)
    return tuple(words[k] for k in found[0]) if found is not None and found[1] == len(words) else None


def words_at(word: Mapping[int, str], trace: Trace, row: int) -> tuple[str, ...]:
    """Name the positions of a sequence by the words of the places that they read; a place without one by its id."""
    steps = trace.places[row]
    return tuple(
        " ".join(word.get(place, f"‹{key}›") for place, key in zip(step, keys, strict=True))
        if step
        else (f"x{t}" if trace.joins_others else OWN_VECTOR)
        for t, (step, keys) in enumerate(zip(steps, steps if trace.ids is None else trace.ids[row], strict=True))
    )


def are_forward(steps: Sequence[Sequence[int]]) -> bool:
    """Tell whether a sequence reads its tokens in the order of the argument, be they several at a position."""
    read = [each for each in ([place for place in step if place >= 0] for step in steps) if each]
    ordered = (min(one) <= min(other) and max(one) <= max(other) for one, other in pairwise(read))
    return bool(read) and all(ordered)


def padded_words(words: list[str], count: int, free: Collection[int]) -> list[str] | None:
    """Give each of ``count`` tokens its word: the ``free`` ones need none where they come last or first."""
    missing = count - len(words)
    if missing < 0:
        return None
    if all(place in free for place in range(len(words), count)):
        return [*words, *[PADDING_NAME] * missing]
    if all(place in free for place in range(missing)):
        return [*[PADDING_NAME] * missing, *words]
    return None


def words_around_padding(words: Sequence[str], count: int, padding: Collection[int]) -> list[str] | None:
    """Give each of ``count`` tokens but padding its word, wherever padding stands; None if they are not so many."""
    if len(words) + len(padding) != count:
        return None
    left = iter(words)
    return [PADDING_NAME if place in padding else next(left) for place in range(count)]


def _ids(trace: Trace, row: int) -> tuple[str, ...]:
    """Name the positions of one sequence by ids; those of vectors by their steps, or places among those read."""
    if trace.ids is not None:
        return tuple(" ".join(map(str, each)) or OWN_VECTOR for each in trace.ids[row])
    steps = steps_of_argument(trace, row)
    if steps is not None:
        return tuple(f"x{k}" for k in steps[0])
    rank = {place: k for k, place in enumerate(sorted({p for each in trace.places[row] for p in each}))}
    return tuple(" ".join(f"x{rank[place]}" for place in each) or OWN_VECTOR for each in trace.places[row])


def _words(rows: list[list[str]], order: Sequence[int], trace: Trace) -> list[tuple[str, ...]] | None:
    """Name the positions of every example by words; None if their number does not fit this argument."""
    found = _by_example(len(rows), order, trace)
    if found is None:
        return None
    flat, example_of = found
    given = trace.given.reshape(-1)
    named = []
    for row in order:
        e = example_of[row]
        places = flat[e].tolist()
        read = {place for each in trace.places[row] for place in each}
        free = {k for k, place in enumerate(places) if place not in read or int(given[place]) == trace.padding}
        words = padded_words(rows[e], len(places), free)
        if words is None and trace.alone:  # of arguments that are joined, padding may stand anywhere
            places, words = sorted(read - {-1}), rows[e]
            places = places if len(places) == len(words) else without_padding(places, trace)
        elif words is None:
            padding = {k for k, place in enumerate(places) if int(given[place]) == trace.padding}
            words = words_around_padding(rows[e], len(places), padding)
        if words is None or len(words) != len(places):
            return None
        named.append(words_at(dict(zip(places, words, strict=True)), trace, row))
    return named


def _by_example(count: int, order: Sequence[int], trace: Trace) -> tuple[torch.Tensor, dict[int, int]] | None:
    """Return the places of the argument by example, and the example that each sequence reads; None if they mix."""
    shape = trace.given.shape
    flat = torch.arange(trace.given.numel(), device="cpu").view(shape)
    if count == 1:
        return flat.reshape(1, -1), dict.fromkeys(order, 0)
    for axis in (axis for axis, size in enumerate(shape) if size == count):
        by_example = flat.movedim(axis, 0).reshape(count, -1)
        home = {place: e for e, row in enumerate(by_example.tolist()) for place in row}
        examples = {row: {home[p] for each in trace.places[row] for p in each if p >= 0} for row in order}
        homes = {row: next(iter(found)) for row, found in examples.items() if len(found) == 1}
        none = [row for row, found in examples.items() if not found]  # of unknown words, which have no names
        if homes and len(set(homes.values())) + len(none) == len(examples):  # two of one row are of another axis
            left = (e for e in range(count) if e not in homes.values())
            return by_example, homes | dict(zip(none, left, strict=False))
    return None
