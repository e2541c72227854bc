"""What the positions of a sentence are called."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.errors import ShapeError, UsageError

__all__ = ["Tokens", "label"]

Tokens = Sequence[str] | Sequence[Sequence[str]] | None
"""The words of a sentence, or of each sentence of a batch."""


def label(
    tokens: Tokens, lengths: Sequence[int], time: int, arguments: Sequence[object], batch_first: bool
) -> list[tuple[str, ...]]:
    """Name every position of every example: as given, else by token ids found among the arguments, else by number.

    Args:
        tokens: the words, if they are known.
        lengths: of the examples.
        time: how many positions the network read.
        arguments: the model's.
        batch_first: how the network lays its inputs out, and the ids probably, if that cannot be told from their shape.

    Returns:
        For each example as many names as it has positions.

    Raises:
        ShapeError: when the words are not those of as many examples, or too many.
        UsageError: when they are one string.
    """
    if tokens is None:
        ids = _ids(arguments, len(lengths), time, batch_first)
        if ids is None:
            return [tuple(f"x{t + 1}" for t in range(n)) for n in lengths]
        return [tuple(map(str, row[:n])) for row, n in zip(ids.tolist(), lengths, strict=True)]
    if isinstance(tokens, str):
        raise UsageError(f"tokens is the string {tokens[:40]!r}; expected a list of words, such as its split()")
    rows = list(tokens) if tokens and isinstance(tokens[0], list | tuple) else [tokens]
    if len(rows) != len(lengths):
        raise ShapeError(f"tokens for {len(rows)} examples came; expected {len(lengths)}")
    named = []
    for row, length in zip(rows, lengths, strict=True):
        if len(row) > length:
            raise ShapeError(f"{len(row)} tokens came for a sequence of {length}; expected at most {length}")
        # positions without a name were read all the same: padding that the model did not mask
        named.append((*map(str, row), *["‹pad›"] * (length - len(row))))
    return named


def _ids(arguments: Sequence[object], batch: int, time: int, batch_first: bool) -> Tensor | None:
    """Find the token ids, shape (batch, time): among several tensors that could be, one that is not a mask."""
    found = []
    for value in arguments:
        if isinstance(value, Tensor) and not value.is_floating_point() and value.dtype != torch.bool:
            # one row without a batch; lengths of a batch look like one as well
            ids = value[None] if value.dim() == 1 and batch == 1 else value
            if ids.dim() == 2:
                ways = (ids, ids.T) if batch_first else (ids.T, ids)
                found += [way for way in ways if way.shape == (batch, time)][:1]
    return next((ids for ids in found if int(ids.max()) > 1), found[0] if found else None)
