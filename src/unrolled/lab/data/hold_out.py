"""Hold out examples for corpora without a dev or test split."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["hold_out"]

T = TypeVar("T")


def hold_out(
    examples: Sequence[T], count: int, labels: Callable[[T], Iterable[Hashable]], *, seed: int = 0
) -> tuple[list[T], list[T]]:
    """Split examples at random into those that remain and ``count`` that are held out; both keep their order.

    The same seed gives the same split on every machine. The last example with a label always remains, so fewer than
    ``count`` examples may be held out.

    Example:
        >>> remaining, held_out = hold_out(["a", "b", "b", "b"], 2, lambda example: example)
        >>> sorted(remaining), held_out
        (['a', 'b'], ['b', 'b'])
    """
    generator = random.Random(seed)  # noqa: S311  # no secret
    # Python guarantees the same sequence in every version for random() only.
    keys = [generator.random() for _ in examples]
    remaining = Counter(label for example in examples for label in set(labels(example)))
    held_out: set[int] = set()
    for index in sorted(range(len(examples)), key=keys.__getitem__):
        if len(held_out) == count:
            break
        own = set(labels(examples[index]))
        if all(remaining[label] > 1 for label in own):
            remaining.subtract(own)
            held_out.add(index)
    return (
        [example for index, example in enumerate(examples) if index not in held_out],
        [example for index, example in enumerate(examples) if index in held_out],
    )
