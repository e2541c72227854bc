"""Splits in which no two examples are equal, so that dev and test hold nothing that was trained on."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import TypeVar

from unrolled.errors import UsageError

__all__ = ["SMALL", "Sizes", "draw_unique_splits"]

Sizes = tuple[int, int, int]
"""How many examples, or lines, are for training, dev and test."""
E = TypeVar("E", bound=Hashable)

SMALL: Sizes = (240, 40, 40)
"""Enough to see that something is learned, in seconds."""
_PATIENCE = 100


def draw_unique_splits(draw: Callable[[random.Random], E], sizes: Sizes, seed: int) -> dict[str, tuple[E, ...]]:
    """Draw examples until the splits ``train``, ``dev`` and ``test`` are full of different ones.

    Raises:
        UsageError: when there do not seem to be enough.
    """
    generator = random.Random(seed)  # noqa: S311  # sentences, not secrets
    wanted, found = sum(sizes), dict[E, None]()  # a dict keeps the order in which they were drawn
    for _ in range(_PATIENCE * wanted):
        if len(found) == wanted:
            break
        found[draw(generator)] = None
    if len(found) < wanted:
        raise UsageError(f"the grammar gave only {len(found)} different examples of {wanted}: ask for fewer")
    drawn = list(found)
    train, dev = sizes[0], sizes[0] + sizes[1]
    return {"train": tuple(drawn[:train]), "dev": tuple(drawn[train:dev]), "test": tuple(drawn[dev:])}
