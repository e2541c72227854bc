"""Words for the tokens of an account."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.errors import ShapeError
from unrolled.explanation.tokens.token_names import PADDING_NAME, Tokens, padded_words, word_rows, words_around_padding
from unrolled.model_runs.nested_tensors import leaves
from unrolled.whole_model.contributions import Contributions
from unrolled.whole_model.example_axis import rows_by_example

__all__ = ["words_of_texts"]


def words_of_texts(
    tokens: Tokens, args: tuple[Any, ...], kwargs: Mapping[str, Any], means: Contributions, batch: int
) -> tuple[tuple[str, ...], ...]:
    """Name the tokens of each example: as given, else by their ids; without texts its steps."""
    arguments = {**{str(place): value for place, value in enumerate(args)}, **kwargs}
    given = {".".join(map(str, place)): each for place, each in leaves(arguments)}  # as 0.ids
    if not means.texts:
        return _steps(tokens, means, given, batch)
    order = {name: means.orders[name].tolist() if name in means.orders else range(batch) for name in means.texts}
    packed = {name: each for name, each in arguments.items() if type(each) is PackedSequence}
    given |= {name: each.data for name, each in packed.items()}
    texts: dict[str, list[list[str]]] = {}
    free: list[set[int]] = [set() for _ in range(batch)]  # what needs no word: padding, and what contributes nothing
    padding: list[set[int]] = [set() for _ in range(batch)]
    maybe: list[set[int]] = [set() for _ in range(batch)]  # padding, or a word that has the id 0
    count = 0
    for name, part in means.texts.items():
        parts = rows_by_example(part, means.axes[name], batch)
        rows = _ids_of_rows(given.get(name), part, means.axes[name], batch)
        texts[name] = [list(map(str, row)) for row in rows]
        if name in packed and parts.shape[1] == len(packed[name].data) and batch > 1:  # not of one token each
            for place, text in enumerate(texts[name]):
                others = [k for k, owner in enumerate(_examples_of(packed[name])) if owner != place]
                padding[place].update(count + k for k in others)
                maybe[place].update(padding[place])
                free[place].update(padding[place])
                texts[name][place] = [PADDING_NAME if k in others else word for k, word in enumerate(text)]
        elif tokens is not None:
            known = means.padding.get(name)
            for text, values in zip(order[name], parts.tolist(), strict=True):
                nothing = {k for k, value in enumerate(values) if not value}
                zeros = {k for k, number in enumerate(rows[text]) if number == 0}
                # a table without an id of padding may have a word at 0, and another id for padding that is masked
                own = zeros & nothing if known is None else {k for k, each in enumerate(rows[text]) if each in known}
                padding[text].update(count + k for k in own)
                maybe[text].update(count + k for k in own | zeros)
                free[text].update(count + k for k in own | zeros | nothing)
        count += parts.shape[1]
    if tokens is not None:
        _rename(texts, word_rows(tokens, batch), free, padding, maybe)
    return tuple(tuple(word for name in texts for word in texts[name][order[name][place]]) for place in range(batch))


def _ids_of_rows(ids: Tensor | None, part: Tensor, axis: int | None, batch: int) -> list[list[Any]]:
    """Return the ids of each text of an argument, whose contributions have another shape if examples share it.

    Where they are not known, the tokens are named by number.
    """
    count = rows_by_example(part, axis, batch).shape[1]
    if ids is None or ids.numel() not in (part.numel(), count):
        return [[f"x{k}" for k in range(count)]] * batch
    ids = ids.long() if ids.is_floating_point() else ids
    return (
        rows_by_example(ids, axis, batch).tolist() if ids.numel() == part.numel() else [ids.flatten().tolist()] * batch
    )


def _examples_of(packed: PackedSequence) -> list[int]:
    """Return the example of each token of a packed batch, whose steps stand one after the other."""
    order = packed.sorted_indices
    places = torch.cat([torch.arange(int(size), device="cpu") for size in packed.batch_sizes])
    found: list[int] = (places if order is None else order.cpu()[places]).tolist()
    return found


def _rename(
    texts: dict[str, list[list[str]]],
    words: list[list[str]],
    free: Sequence[set[int]],
    padding: Sequence[set[int]],
    maybe: Sequence[set[int]],
) -> None:
    """Give the tokens of each text its words, which go through all arguments."""
    for place, row in enumerate(words):
        count = sum(len(rows[place]) for rows in texts.values())
        # first beside padding: behind a maximum tokens contribute nothing too, and their words would be others'
        padded = (
            padded_words(row, count, padding[place])
            or words_around_padding(row, count, padding[place])
            or padded_words(row, count, free[place])
            or words_around_padding(row, count, maybe[place])
        )
        if padded is None:
            parts = [f"{len(rows[place])} of argument {name}" for name, rows in texts.items()]
            joined = f" ({', then '.join(parts)})" if len(parts) > 1 else ""
            raise ShapeError(
                f"{len(row)} tokens for a text of {count}{joined}; expected one for each that is not padding"
            )
        for rows in texts.values():
            rows[place], padded = padded[: len(rows[place])], padded[len(rows[place]) :]


def _steps(
    tokens: Tokens, means: Contributions, given: Mapping[str, Tensor], batch: int
) -> tuple[tuple[str, ...], ...]:
    """Return the names of the steps of each example: as given, else ``x0``, ``x1``, … of the longest argument."""
    sizes = _sizes_of_steps(means.features, means, batch)
    if tokens is None:
        longest = tuple(f"x{step}" for step in range(max(sizes, default=0)))
        return (longest,) * batch if longest else ()
    rows = word_rows(tokens, batch)
    numbers = {
        name: given[name] for name, part in means.features.items() if name in given and given[name].shape == part.shape
    }
    values = _sizes_of_steps(numbers, means, batch)
    for count, by_example in sorted(sizes.items()):
        # first beside zeros: behind a maximum other steps contribute nothing too
        named = [
            padded_words(row, count, _zeros(own) & _zeros(steps)) or padded_words(row, count, _zeros(steps))
            for row, own, steps in zip(rows, values.get(count, by_example), by_example, strict=True)
        ]
        padded = [row for row in named if row is not None]
        if len(padded) == batch:
            return tuple(map(tuple, padded))
    raise _steps_without_name(rows, sizes)


def _zeros(steps: Tensor) -> set[int]:
    return {step for step, size in enumerate(steps.tolist()) if not size}


def _sizes_of_steps(parts: Mapping[str, Tensor], means: Contributions, batch: int) -> dict[int, Tensor]:
    """Add up the sizes of all numbers of each step, shape (batch, steps), by the number of steps of an argument."""
    sizes: dict[int, Tensor] = {}
    for name, part in parts.items():
        axis = means.axes[name]
        if count := _steps_of(part.shape, axis):
            own = rows_by_example(part, axis, batch).reshape(batch, count, -1).abs().sum(dim=-1)
            sizes[count] = sizes[count] + own if count in sizes else own
    return sizes


def _steps_without_name(rows: list[list[str]], counts: Collection[int]) -> ShapeError:
    """Say how many names an example has, and how many it needs."""
    names = next((len(row) for row in rows if len(row) not in counts), len(rows[0]))
    if not counts:
        return ShapeError(
            f"{names} tokens, and no argument has steps of numbers, (batch, steps, numbers); name the numbers of "
            "(batch, numbers) by features="
        )
    steps = min((count for count in counts if count > names), default=max(counts, default=0))
    return ShapeError(f"{names} tokens for numbers of {steps} steps; expected one for each that is not padding")


def _steps_of(shape: Sequence[int], axis: int | None) -> int:
    own = [size for place, size in enumerate(shape) if place != axis]
    if axis is None and len(own) > 1 and own[0] == 1:
        own = own[1:]
    return math.prod(own[:-1]) if len(own) > 1 else 0
