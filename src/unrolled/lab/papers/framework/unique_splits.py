"""Splits of which no two examples are alike, so that none of dev and test was trained on."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import TypeVar

from unrolled.errors import UsageError

__all__ = ["SMALL", "Sizes", "distinct_splits"]

Sizes = tuple[int, int, int]
"""How many examples, or lines, are for training, dev and test."""
E = TypeVar("E", bound=Hashable)

SMALL: Sizes = (240, 40, 40)
"""Enough to see that something is learned, in seconds."""
_PATIENCE = 100


def distinct_splits(draw: Callable[[random.Random], E], sizes: Sizes, seed: int) -> dict[str, tuple[E, ...]]:
    """Draw examples until there are enough of which no two are alike.

    Args:
        draw: gives an example.
        sizes: of the splits.
        seed: of the generator.

    Returns:
        The splits ``train``, ``dev`` and ``test``.

    Raises:
        UsageError: when there do not seem to be as many.
    """
    generator = random.Random(seed)  # noqa: S311  # sentences, not secrets
    wanted, found = sum(sizes), dict[E, None]()  # a dict keeps the order in which they were drawn
    for _ in range(_PATIENCE * wanted):
        if len(found) == wanted:
            break
        found[draw(generator)] = None
    if len(found) < wanted:
        raise UsageError(f"{wanted} different examples were asked for; this grammar gave only {len(found)}")
    drawn = list(found)
    train, dev = sizes[0], sizes[0] + sizes[1]
    return {"train": tuple(drawn[:train]), "dev": tuple(drawn[train:dev]), "test": tuple(drawn[dev:])}
