r"""How far up the right answers stand: mean reciprocal rank and mean average precision.

.. math:: \mathrm{MRR} = \frac{1}{Q} \sum_q \frac{1}{r_{q,1}}, \qquad
    \mathrm{MAP} = \frac{1}{Q} \sum_q \frac{1}{R_q} \sum_{k=1}^{R_q} \frac{k}{r_{q,k}}

where r_{q,k} is the rank of the k-th right candidate of question q, from 1, and R_q how many it has. Questions with
no right candidate have no rank and are not counted.

Candidates of equal score are put into the worst order, the wrong ones first: a model that cannot tell them apart gets
nothing for the order in which they came.

Source:
    Voorhees and Tice (1999), TREC-8 question answering; Manning, Raghavan and Schütze (2008), section 8.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unrolled.errors import ShapeError

__all__ = ["RankingScores", "ranking_scores"]


class RankingScores(NamedTuple):
    """How well candidates were ranked; both from 0 to 1."""

    mrr: float
    """Mean reciprocal rank of the first right one."""
    map: float
    """Mean average precision."""


def ranking_scores(scores: Sequence[Sequence[float]], right: Sequence[Sequence[bool]]) -> RankingScores:
    """Rank the candidates of questions by their scores.

    Args:
        scores: of each question's candidates; the largest comes first.
        right: which of them answer it.

    Returns:
        Both measures, over the questions that have a right candidate.

    Raises:
        ShapeError: when the two are not of the same candidates, or no question has a right one.

    Example:
        >>> ranking_scores([[0.1, 0.9, 0.5], [1.0, 0.0]], [[True, False, True], [True, False]])
        RankingScores(mrr=0.75, map=0.7916666666666666)
    """
    reciprocal, precision = [], []
    if len(scores) != len(right):
        raise ShapeError(f"scores of {len(scores)} questions and answers of {len(right)} came; expected as many")
    for question, (given, truths) in enumerate(zip(scores, right, strict=True)):
        if len(given) != len(truths):
            raise ShapeError(f"question {question} has {len(given)} scores for {len(truths)} candidates")
        order = sorted(zip(given, truths, strict=True), key=lambda pair: (-pair[0], pair[1]))
        ranks = [rank for rank, (_, truth) in enumerate(order, start=1) if truth]
        if ranks:
            reciprocal.append(1 / ranks[0])
            precision.append(sum(k / rank for k, rank in enumerate(ranks, start=1)) / len(ranks))
    if not reciprocal:
        raise ShapeError(f"none of {len(scores)} questions has a right candidate; expected one that has")
    return RankingScores(sum(reciprocal) / len(reciprocal), sum(precision) / len(precision))
