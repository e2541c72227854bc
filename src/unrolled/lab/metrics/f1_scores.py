"""F1 scores: named entities under strict IOBES, and the official "(9+1)-way" score of SemEval-2010's relations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from unrolled.errors import DataError, UsageError

__all__ = ["OTHER", "EntityScores", "entity_scorer", "entity_scores", "relation_f1", "without_direction"]


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


OTHER = "Other"
"""The label of examples without a relation."""
_DIRECTION = re.compile(r"\((?:e1,e2|e2,e1)\)$")


def without_direction(label: str) -> str:
    """Return the relation of a label: ``Cause-Effect`` of ``Cause-Effect(e2,e1)``."""
    return _DIRECTION.sub("", label)


def relation_f1(truths: Sequence[str], predictions: Sequence[str]) -> float:
    """Average the F1 of the relations, from labels such as ``Cause-Effect(e2,e1)``.

    Both directions of a relation are one class, but a wrong direction is an error. The mean is over the relations that
    occur among the true labels. The official scorer always takes all nine, and all nine occur in the official test.

    Returns:
        The macro-averaged F1, from 0 to 1.

    Raises:
        DataError: There is not one prediction for each example, or all examples are Other.

    Example:
        >>> relation_f1(["Cause-Effect(e1,e2)", "Other"], ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"])
        0.6666666666666666
    """
    if len(truths) != len(predictions):
        raise DataError(f"there are {len(predictions)} predictions for {len(truths)} examples; expected one for each")
    true, predicted = (Counter(map(without_direction, labels)) for labels in (truths, predictions))
    pairs = zip(truths, predictions, strict=True)
    correct = Counter(without_direction(truth) for truth, prediction in pairs if truth == prediction)
    relations = sorted(true.keys() - {OTHER})
    if not relations:
        raise DataError(f"no example has a relation other than {OTHER!r}; expected at least one")
    return sum(2 * correct[name] / (predicted[name] + true[name]) for name in relations) / len(relations)
