"""Corpora for trials: read once for several trials in a row, and shortened for small scales."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus, Language, Stream
from unrolled.lab.data.load import load_dataset

__all__ = ["SMALL", "Sizes", "cut_lines", "draw_unique_splits", "first_lines", "load_cached"]


C = TypeVar("C", bound=Corpus[object])
L = TypeVar("L", bound=Language)


def load_cached(name: str, kind: type[C], folder: Path | None) -> C:
    """Read a dataset, unless it is the one that was read last.

    Args:
        name: A member of ``unrolled.lab.data.datasets``.
        kind: The class of corpus wanted.
        folder: The folder of the datasets; None for the one that ``UNROLLED_DATA`` names.
    """
    corpus = _read(name, kind, folder)  # type: ignore[arg-type]  # a class is hashable
    assert isinstance(corpus, kind)
    return corpus


@lru_cache(maxsize=1)  # the last one only: a corpus of long texts takes a gigabyte
def _read(name: str, kind: type[Corpus[object]], folder: Path | None) -> Corpus[object]:
    return load_dataset(name, kind, folder)


def first_lines(corpus: L, train: int | None, dev: int | None = None, test: int | None = None) -> L:
    """Keep the first lines of each split; None keeps all of them."""

    def beginning(split: Stream, count: int | None) -> Stream:
        return Stream(lambda: islice(iter(split), count))

    return replace(
        corpus,
        train=beginning(corpus.train, train),
        dev=beginning(corpus.dev, dev),
        test=beginning(corpus.test, test),
    )


def cut_lines(corpus: L, length: int | None) -> L:
    """Cut the training lines to a number of tokens; None keeps them whole, as dev and test stay.

    A line that is cut loses the token that ends it, so nothing tells where lines end; a shorter line keeps it.
    """

    def cut() -> Iterator[Sequence[str]]:
        return (line[:length] for line in corpus.train)

    return replace(corpus, train=Stream(cut))


Sizes = tuple[int, int, int]
"""How many examples, or lines, are for training, dev and test."""
E = TypeVar("E", bound=Hashable)

SMALL: Sizes = (240, 40, 40)
"""Enough to see that something is learned, in seconds."""
_PATIENCE = 100


def draw_unique_splits(draw: Callable[[random.Random], E], sizes: Sizes, seed: int) -> dict[str, tuple[E, ...]]:
    """Draw examples until the splits ``train``, ``dev`` and ``test`` are full of different ones.

    Raises:
        UsageError: If there do not seem to be enough.
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
