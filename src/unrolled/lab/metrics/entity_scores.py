"""F1 of named entities under strict IOBES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from unrolled.errors import UsageError

__all__ = ["EntityScores", "entity_scorer", "entity_scores"]


class EntityScores(NamedTuple):
    """Micro-averaged scores from 0 to 1; 0 where the denominator is zero."""

    precision: float
    """The share of predicted entities that are correct."""
    recall: float
    """The share of true entities that are predicted."""
    f1: float
    """The harmonic mean of precision and recall."""


def entity_scorer() -> Callable[..., tuple[Any, Any, Any, Any]]:
    """Load seqeval's function from true and predicted tags to precision, recall, F1 and support.

    Raises:
        UsageError: seqeval is not installed.
    """
    try:
        from seqeval.metrics.v1 import precision_recall_fscore_support
        from seqeval.scheme import IOBES
    except ImportError as error:
        raise UsageError('entity F1 needs seqeval; install it with: pip install "unrolled[tasks]"') from error
    return partial(precision_recall_fscore_support, average="micro", scheme=IOBES, zero_division=0)


def entity_scores(truths: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> EntityScores:
    """Score the entities of all sentences together, given the IOBES tags of each sentence.

    Raises:
        UsageError: seqeval is not installed.

    Example:
        >>> entity_scores([["B-PER", "E-PER", "O"]], [["B-PER", "E-PER", "S-LOC"]]).precision
        0.5
    """
    precision, recall, f1, _ = entity_scorer()([list(tags) for tags in truths], [list(tags) for tags in predictions])
    return EntityScores(float(precision), float(recall), float(f1))
