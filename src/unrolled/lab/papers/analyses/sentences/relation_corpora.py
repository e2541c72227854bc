"""Relation corpora with less in them: without the directions of relations, or without the markers of the nominals."""

from __future__ import annotations

from dataclasses import replace

from unrolled.lab.data.corpus import Example, Relations
from unrolled.lab.data.tokenise import ENTITY_MARKERS
from unrolled.lab.metrics.relation_f1 import without_direction

__all__ = ["without_directions", "without_markers"]


def without_directions(corpus: Relations) -> Relations:
    """Merge a relation and its reverse: *Implicit n-grams* counts ten classes (table 6), not nineteen."""
    merged = list(map(without_direction, corpus.labels))
    labels = tuple(dict.fromkeys(merged))
    changed = corpus.map_splits(
        lambda split: tuple(Example(each.tokens, labels.index(merged[each.label])) for each in split)
    )
    return replace(changed, labels=labels)


def without_markers(corpus: Relations) -> Relations:
    """Take the four markers out of every text, so that nothing tells which two nominals are meant."""

    def without(example: Example) -> Example:
        return replace(example, tokens=tuple(token for token in example.tokens if token not in ENTITY_MARKERS))

    return corpus.map_splits(lambda split: tuple(map(without, split)))
