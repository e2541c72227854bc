from __future__ import annotations

import itertools
import random

import pytest

from unrolled.errors import ShapeError
from unrolled.lab.metrics.ranking import ranking_scores


def precision_at(order: list[bool], k: int) -> float:
    return sum(order[:k]) / k


def brute(scores, right) -> tuple[float, float]:
    """The minimum of both scores over every order of the candidates that agrees with the scores."""
    reciprocal, average = [], []
    for given, truths in zip(scores, right, strict=True):
        if not any(truths):
            continue
        orders = [
            [truths[i] for i in order]
            for order in itertools.permutations(range(len(given)))
            if all(given[a] >= given[b] for a, b in itertools.pairwise(order))
        ]
        reciprocal.append(min(1 / (order.index(True) + 1) for order in orders))
        average.append(min(sum(precision_at(o, k + 1) for k in range(len(o)) if o[k]) / sum(o) for o in orders))
    return sum(reciprocal) / len(reciprocal), sum(average) / len(average)


@pytest.mark.parametrize("seed", range(20))
def test_both_equal_the_worst_over_every_order_that_the_scores_allow(seed):
    draw = random.Random(seed)
    sizes = [draw.randint(1, 6) for _ in range(8)]
    scores = [[draw.choice((0.0, 0.5, 0.5, 2.0, -1.0)) for _ in range(size)] for size in sizes]
    right = [[draw.random() < 0.4 for _ in range(size)] for size in sizes]
    right[0][0] = True
    assert ranking_scores(scores, right) == pytest.approx(brute(scores, right))


def test_ties_are_put_in_the_worst_order():
    for right in ([True, False, False], [False, False, True]):
        assert ranking_scores([[0.0, 0.0, 0.0]], [right]).mrr == pytest.approx(1 / 3)
        assert ranking_scores([[1.0 * truth for truth in right]], [right]).mrr == 1


def test_a_question_without_an_answer_is_not_counted():
    one = ranking_scores([[0.1, 0.2]], [[True, False]])
    assert ranking_scores([[0.1, 0.2], [3.0, 1.0]], [[True, False], [False, False]]) == one


def test_by_hand():
    # ranks 2 and 3 of 3: 1/2 and (1/2 + 2/3) / 2
    found = ranking_scores([[0.9, 0.5, 0.1]], [[False, True, True]])
    assert found == pytest.approx((0.5, 7 / 12))


@pytest.mark.parametrize(
    ("scores", "right", "message"),
    [
        ([[0.1]], [], "scores of 1 questions and labels of 0; expected the same"),
        ([[0.1], [0.1, 0.2]], [[True], [True]], "question 1 has 2 scores for 1 candidates"),
        ([[0.1], [0.2]], [[False], [False]], "none of 2 questions has a correct candidate"),
        ([], [], "none of 0 questions"),
    ],
)
def test_invalid_candidates(scores, right, message):
    with pytest.raises(ShapeError, match=message):
        ranking_scores(scores, right)
