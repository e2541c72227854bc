r"""Mean reciprocal rank and mean average precision.

.. math:: \mathrm{MRR} = \frac{1}{Q} \sum_q \frac{1}{r_{q,1}}, \qquad
    \mathrm{MAP} = \frac{1}{Q} \sum_q \frac{1}{R_q} \sum_{k=1}^{R_q} \frac{k}{r_{q,k}}

with r_{q,k} the rank, from 1, of the k-th correct candidate of question q, and R_q the number of correct candidates.
Questions without a correct candidate are not counted.

Candidates of equal score are put in the worst order, wrong ones first, so that a model that cannot tell them apart does
not profit from the order of the data. scikit-learn and torchmetrics treat such ties in other ways.

Source:
    Voorhees and Tice (1999), TREC-8 question answering; Manning, Raghavan and Schütze (2008), section 8.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unrolled.errors import ShapeError

__all__ = ["RankingScores", "ranking_scores"]


class RankingScores(NamedTuple):
    """Both scores, from 0 to 1."""

    mrr: float
    """Mean reciprocal rank of the first correct candidate."""
    map: float
    """Mean average precision."""


def ranking_scores(scores: Sequence[Sequence[float]], correct: Sequence[Sequence[bool]]) -> RankingScores:
    """Rank the candidates of each question by score, the largest first.

    Args:
        scores: The scores of each question's candidates.
        correct: Whether each candidate is correct.

    Returns:
        Means over the questions that have a correct candidate.

    Raises:
        ShapeError: The two arguments do not have the same candidates, or no question has a correct one.

    Example:
        >>> ranking_scores([[0.1, 0.9, 0.5], [1.0, 0.0]], [[True, False, True], [True, False]])
        RankingScores(mrr=0.75, map=0.7916666666666666)
    """
    reciprocal, precision = [], []
    if len(scores) != len(correct):
        raise ShapeError(f"there are scores of {len(scores)} questions and labels of {len(correct)}; expected the same")
    for question, (given, labels) in enumerate(zip(scores, correct, strict=True)):
        if len(given) != len(labels):
            raise ShapeError(f"question {question} has {len(given)} scores for {len(labels)} candidates")
        order = sorted(zip(given, labels, strict=True), key=lambda pair: (-pair[0], pair[1]))
        ranks = [rank for rank, (_, label) in enumerate(order, start=1) if label]
        if ranks:
            reciprocal.append(1 / ranks[0])
            precision.append(sum(k / rank for k, rank in enumerate(ranks, start=1)) / len(ranks))
    if not reciprocal:
        raise ShapeError(f"none of {len(scores)} questions has a correct candidate; expected at least one")
    return RankingScores(sum(reciprocal) / len(reciprocal), sum(precision) / len(precision))
