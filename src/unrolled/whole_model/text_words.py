"""Words for the tokens of an account."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from unrolled.errors import ShapeError
from unrolled.explanation.token_names import PADDING, Tokens, padded_words, word_rows
from unrolled.whole_model.contributions import Contributions

__all__ = ["words_of_texts"]


def words_of_texts(
    tokens: Tokens, args: tuple[Any, ...], kwargs: Mapping[str, Any], means: Contributions, batch: int
) -> tuple[tuple[str, ...], ...]:
    """Name the tokens of each example: as given, else by their ids; without texts its steps."""
    if not means.texts:
        return _steps(tokens, means, batch)
    order = list(range(batch)) if means.order is None else means.order.tolist()
    named: list[list[str]] = [[] for _ in range(batch)]
    free: list[set[int]] = [set() for _ in range(batch)]  # what needs no word: padding, and what contributes nothing
    given = {**{str(place): value for place, value in enumerate(args)}, **kwargs}
    for name, part in means.texts.items():
        ids, axis = given.get(name), means.axes[name]
        parts = part.reshape(1, -1) if axis is None else part.movedim(axis, 0).reshape(batch, -1)
        rows: list[list[Any]] = [[f"x{k}" for k in range(parts.shape[1])]] * batch
        if isinstance(ids, Tensor) and ids.numel() == part.numel():
            rows = (ids.reshape(1, -1) if axis is None else ids.movedim(axis, 0).reshape(batch, -1))[order].tolist()
        for words, unnamed, row, values in zip(named, free, rows, parts.tolist(), strict=True):
            if tokens is not None:
                unnamed.update(len(words) + k for k, value in enumerate(values) if not value or row[k] == 0)
            words.extend(map(str, row))
    if tokens is None:
        return tuple(map(tuple, named))
    texts, found = word_rows(tokens, batch), []
    for k, unnamed, ids in zip(order, free, named, strict=True):
        padded = padded_words(texts[k], len(ids), unnamed)
        if padded is None:
            raise ShapeError(
                f"{len(texts[k])} tokens for a text of {len(ids)}; expected one for each that is not padding"
            )
        found.append(tuple(padded))
    return tuple(found)


def _steps(tokens: Tokens, means: Contributions, batch: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the steps of each example: as given, else ``x0``, ``x1``, … of the longest argument."""
    counts = {_steps_of(part.shape, means.axes[name]) for name, part in means.features.items()}
    if tokens is None:
        longest = tuple(f"x{step}" for step in range(max(counts, default=0)))
        return (longest,) * batch if longest else ()
    rows = word_rows(tokens, batch)
    for row in rows:
        if not any(len(row) <= count for count in counts):
            raise ShapeError(f"{len(row)} tokens for numbers of {max(counts, default=0)} steps; expected one for each")
    most = min(count for count in counts if all(len(row) <= count for row in rows))
    return tuple((*row, *[PADDING] * (most - len(row))) for row in rows)


def _steps_of(shape: Sequence[int], axis: int | None) -> int:
    own = [size for place, size in enumerate(shape) if place != axis]
    if axis is None and len(own) > 1 and own[0] == 1:
        own = own[1:]
    return math.prod(own[:-1]) if len(own) > 1 else 0
