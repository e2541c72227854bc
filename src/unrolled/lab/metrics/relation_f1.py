r"""The official score of relation classification at SemEval-2010, "(9+1)-way evaluation with directionality".

``Cause-Effect(e1,e2)`` and ``Cause-Effect(e2,e1)`` are one relation. The correct relation in the wrong direction counts
as one false positive and one false negative of that relation:

.. math:: F_1 = \frac{1}{|R|} \sum_{r \in R} \frac{2 · \text{correct}_r}{\text{predicted}_r + \text{true}_r}

with correct_r the predictions where relation and direction are correct, and R the relations among the true labels
except ``Other``: nine in the test set. A prediction of r where the true label is Other counts among predicted_r.

Source:
    Hendrickx et al. (2010), SemEval-2010 Task 8, section 4; the scorer of the task, version 1.2, which also divides by
    the number of relations among the true labels. https://aclanthology.org/S10-1006
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from unrolled.errors import DataError

__all__ = ["OTHER", "relation_f1"]

OTHER = "Other"
"""The label of examples without a relation."""
_DIRECTION = re.compile(r"\((?:e1,e2|e2,e1)\)$")


def relation_f1(truths: Sequence[str], predictions: Sequence[str]) -> float:
    """Average the F1 of the relations, from labels such as ``Cause-Effect(e2,e1)``.

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
    true = Counter(_DIRECTION.sub("", name) for name in truths)
    predicted = Counter(_DIRECTION.sub("", name) for name in predictions)
    pairs = zip(truths, predictions, strict=True)
    correct = Counter(_DIRECTION.sub("", truth) for truth, prediction in pairs if truth == prediction)
    relations = sorted(true.keys() - {OTHER})
    if not relations:
        raise DataError(f"no example has a relation other than {OTHER!r}; expected at least one")
    return sum(2 * correct[name] / (predicted[name] + true[name]) for name in relations) / len(relations)
