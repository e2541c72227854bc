"""The official "(9+1)-way" score of SemEval-2010's relations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from unrolled.errors import DataError

__all__ = ["OTHER", "relation_f1", "without_direction"]

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
