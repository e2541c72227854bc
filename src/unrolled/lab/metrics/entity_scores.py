"""Precision, recall and F1 of named entities under strict IOBES.

An entity is correct if its type, its first token and its last token are. Tags that do not spell a whole entity (a
``B-`` without an ``E-``, an ``E-`` of another type) are not an entity, so they are neither correct nor wrong.
conlleval, which reads IOB, would count them as entities; on well-formed tags the two agree.

Source:
    Tjong Kim Sang and De Meulder (2003), arXiv:cs/0306050, section 2.4; seqeval in its mode "strict".
"""

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
        from seqeval.metrics.v1 import precision_recall_fscore_support  # type: ignore[import-untyped]  # no stubs
        from seqeval.scheme import IOBES  # type: ignore[import-untyped]  # no stubs
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
