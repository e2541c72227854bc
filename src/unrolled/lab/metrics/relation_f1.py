r"""The official score of relation classification at SemEval-2010.

It is called "(9+1)-way evaluation with directionality taken into account". ``Cause-Effect(e1,e2)`` and
``Cause-Effect(e2,e1)`` are one relation; a right relation in the wrong direction is wrong, once as a false positive
and once as a false negative of that relation:

.. math:: F_1 = \frac{1}{|R|} \sum_{r \in R} \frac{2 · \text{right}_r}{\text{answered}_r + \text{true}_r}

with right_r the answers where relation and direction are right, and R the relations that occur among the truths,
``Other`` left out: nine in the test set. An answer of r where the truth is Other still counts among answered_r.

Source:
    Hendrickx et al. (2010), SemEval-2010 Task 8, section 4; the task's scorer, version 1.2, which also divides by
    the number of relations that the key has. https://aclanthology.org/S10-1006
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from unrolled.errors import DataError

__all__ = ["OTHER", "relation_f1"]

OTHER = "Other"
"""The name of what is no relation."""
_DIRECTION = re.compile(r"\((?:e1,e2|e2,e1)\)$")


def relation_f1(truths: Sequence[str], answers: Sequence[str]) -> float:
    """Average the F1 of the relations, direction taken into account and Other left out.

    Args:
        truths: the name of each example's relation, such as ``Cause-Effect(e2,e1)``.
        answers: what was said of each.

    Returns:
        The macro-averaged F1, from 0 to 1.

    Raises:
        DataError: when there is not an answer for each example, or no example that is not Other.

    Example:
        >>> relation_f1(["Cause-Effect(e1,e2)", "Other"], ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"])
        0.6666666666666666
    """
    if len(truths) != len(answers):
        raise DataError(f"{len(answers)} answers came for {len(truths)} examples; expected one for each")
    true = Counter(_DIRECTION.sub("", name) for name in truths)
    answered = Counter(_DIRECTION.sub("", name) for name in answers)
    right = Counter(_DIRECTION.sub("", truth) for truth, answer in zip(truths, answers, strict=True) if truth == answer)
    relations = sorted(true.keys() - {OTHER})
    if not relations:
        raise DataError(f"no example has a relation other than {OTHER!r}; expected at least one")
    return sum(2 * right[name] / (answered[name] + true[name]) for name in relations) / len(relations)
