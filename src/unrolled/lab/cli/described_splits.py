"""What a training says of its splits before it begins: their sizes, and what makes a metric on them say less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unrolled.lab.data.corpus import Classification, Corpus, Examples
from unrolled.lab.data.summary import name_of_examples

__all__ = ["describe_splits"]

_FEW = 100  # examples
_MEASURED = ("dev", "test")


def describe_splits(corpus: Corpus[Any], metric: str) -> str:
    """Say how many examples each split has, and what makes a metric on dev and test say less than it seems to.

    Of running text nothing is said.
    """
    if not isinstance(corpus, Examples):
        return ""
    name = name_of_examples(corpus)
    listed = ", ".join(f"{len(split):,} for {which}" for which, split in corpus.splits.items())
    absent = _without_examples(corpus) if isinstance(corpus, Classification) else ()
    return "; ".join([f"{name}: {listed}", *_few(corpus, name, metric), *absent, *_also_in_train(corpus)])


def _few(corpus: Examples[Any], name: str, metric: str) -> Iterator[str]:
    if small := [split for split in _MEASURED if len(corpus.splits[split]) < _FEW]:
        yield f"few {name} to measure {metric} on {' and '.join(small)}"


def _without_examples(corpus: Classification) -> Iterator[str]:
    """Count the classes without an example."""
    for split in _MEASURED:
        if count := len(corpus.labels) - len({each.label for each in corpus.splits[split]}):
            yield f"{count:,} of {len(corpus.labels):,} classes without an example on {split}"


def _also_in_train(corpus: Examples[Any]) -> Iterator[str]:
    trained, repeated = set(corpus.train), []
    for split in _MEASURED:
        examples = corpus.splits[split]
        if count := sum(example in trained for example in examples):
            repeated.append(f"{count:,} of {len(examples):,} on {split}")
    if repeated:
        yield f"examples that are also in train: {', '.join(repeated)}"
