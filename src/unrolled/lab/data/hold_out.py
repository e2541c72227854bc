"""Setting examples aside, for corpora that come without a dev or a test split."""

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
    """Draw examples at random to be set aside; the same ones every time, on every machine.

    What an example is labelled with stays among the examples that are left: the last example with a label is
    never set aside. Repeats of a text are examples like any other.

    Args:
        examples: all of them.
        count: how many to set aside; fewer where each of the others alone has some label.
        labels: what an example is labelled with; nothing when it has no label.
        seed: which are drawn.

    Returns:
        The examples that are left and those set aside, both in their old order.

    Example:
        >>> left, aside = hold_out(["a", "b", "b", "b"], 2, lambda example: example)
        >>> sorted(left), aside
        (['a', 'b'], ['b', 'b'])
    """
    generator = random.Random(seed)  # noqa: S311  # no secret
    # Of all its methods, random() alone is promised to be the same in every version of Python.
    keys = [generator.random() for _ in examples]
    left = Counter(label for example in examples for label in set(labels(example)))
    aside: set[int] = set()
    for index in sorted(range(len(examples)), key=keys.__getitem__):
        if len(aside) == count:
            break
        own = set(labels(examples[index]))
        if all(left[label] > 1 for label in own):
            left.subtract(own)
            aside.add(index)
    return (
        [example for index, example in enumerate(examples) if index not in aside],
        [example for index, example in enumerate(examples) if index in aside],
    )
