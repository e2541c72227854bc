"""Relation corpora with less in them: without the directions of relations, or without the markers of the nominals."""

from __future__ import annotations

from dataclasses import replace

from unrolled.lab.data.corpus import Example, Relations
from unrolled.lab.data.tokenise import ENTITY_MARKERS
from unrolled.lab.metrics.f1_scores import without_direction

__all__ = ["without_directions", "without_markers"]


def without_directions(corpus: Relations) -> Relations:
    """Merge a relation and its reverse: *Implicit n-grams* counts ten classes (table 6), not nineteen."""
    merged = list(map(without_direction, corpus.labels))
    labels = tuple(dict.fromkeys(merged))
    train, dev, test = (
        tuple(Example(example.tokens, labels.index(merged[example.label])) for example in split)
        for split in (corpus.train, corpus.dev, corpus.test)
    )
    return replace(corpus, labels=labels, train=train, dev=dev, test=test)


def without_markers(corpus: Relations) -> Relations:
    """Take the four markers out of every text, so that nothing tells which two nominals are meant."""
    train, dev, test = (
        tuple(
            replace(example, tokens=tuple(token for token in example.tokens if token not in ENTITY_MARKERS))
            for example in split
        )
        for split in (corpus.train, corpus.dev, corpus.test)
    )
    return replace(corpus, train=train, dev=dev, test=test)
