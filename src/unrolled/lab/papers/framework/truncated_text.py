"""Shortened text for language models: the first lines of a corpus, or the beginning of every line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from unrolled.lab.data.corpus import Language, Stream

__all__ = ["cut_lines", "first_lines"]

L = TypeVar("L", bound=Language)


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
