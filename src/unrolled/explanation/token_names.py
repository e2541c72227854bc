"""Names for the positions of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.errors import ShapeError, UsageError

__all__ = ["Tokens", "token_names"]

Tokens = Sequence[str] | Sequence[Sequence[str]] | None
"""The words of a sentence, or of each sentence of a batch."""


def token_names(
    tokens: Tokens, lengths: Sequence[int], time: int, arguments: Sequence[object], batch_first: bool
) -> list[tuple[str, ...]]:
    """Name every position of every example: as given, else by token ids among the model's arguments, else by number.

    ``time`` is the padded length. ``batch_first`` is the network's; it decides the layout of the ids where their shape
    does not.
    """
    if tokens is None:
        ids = _find_ids(arguments, len(lengths), time, batch_first)
        if ids is None:
            return [tuple(f"x{t + 1}" for t in range(n)) for n in lengths]
        return [tuple(map(str, row[:n])) for row, n in zip(ids.tolist(), lengths, strict=True)]
    if isinstance(tokens, str):
        raise UsageError(f"tokens is the string {tokens[:40]!r}; expected a list of words, such as its split()")
    rows = list(tokens) if tokens and isinstance(tokens[0], list | tuple) else [tokens]
    if len(rows) != len(lengths):
        raise ShapeError(f"tokens are those of {len(rows)} examples; expected {len(lengths)}")
    named = []
    for row, length in zip(rows, lengths, strict=True):
        if len(row) > length:
            raise ShapeError(f"{len(row)} tokens for a sequence of {length}; expected at most {length}")
        # the network also read the positions without a name: padding that the model did not mask
        named.append((*map(str, row), *["‹pad›"] * (length - len(row))))
    return named


def _find_ids(arguments: Sequence[object], batch: int, time: int, batch_first: bool) -> Tensor | None:
    """Find the token ids, shape (batch, time): of several integer tensors of that shape, one that is not a mask."""
    found = []
    for value in arguments:
        if isinstance(value, Tensor) and not value.is_floating_point() and value.dtype != torch.bool:
            # a single sentence without a batch axis; the lengths of a batch have one axis as well
            ids = value[None] if value.dim() == 1 and batch == 1 else value
            if ids.dim() == 2:
                layouts = (ids, ids.T) if batch_first else (ids.T, ids)
                found += [layout for layout in layouts if layout.shape == (batch, time)][:1]
    return next((ids for ids in found if int(ids.max()) > 1), found[0] if found else None)
