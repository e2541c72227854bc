"""Less of a text to learn from: its first lines alone, or the beginning of every line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from unrolled.lab.data.corpus import Language, Stream

__all__ = ["cut_lines", "first_lines"]

L = TypeVar("L", bound=Language)


def first_lines(corpus: L, train: int | None, dev: int | None = None, test: int | None = None) -> L:
    """Keep the beginning of each split.

    Args:
        corpus: running text.
        train: how many of its lines to learn from; all of them when None.
        dev: how many to choose on.
        test: how many to measure on.

    Returns:
        The shorter corpus.
    """

    def beginning(split: Stream, count: int | None) -> Stream:
        return Stream(lambda: islice(iter(split), count))

    return replace(
        corpus,
        train=beginning(corpus.train, train),
        dev=beginning(corpus.dev, dev),
        test=beginning(corpus.test, test),
    )


def cut_lines(corpus: L, length: int | None) -> L:
    """Cut the lines that are learned from; dev and test stay whole.

    A line that is cut loses its end with the token that ends it, so that nothing is said of where lines end; a shorter
    one keeps both.

    Args:
        corpus: running text.
        length: how many tokens of a line stay; all of them when None.

    Returns:
        The corpus with partial lines.
    """

    def cut() -> Iterator[Sequence[str]]:
        return (line[:length] for line in corpus.train)

    return replace(corpus, train=Stream(cut))
