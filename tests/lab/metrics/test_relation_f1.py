"""The official score of SemEval-2010 task 8, against the confusion matrix of its scorer."""

from __future__ import annotations

import random

import pytest

from unrolled.errors import DataError
from unrolled.lab.metrics.relation_f1 import relation_f1

RELATIONS = ("Cause-Effect", "Component-Whole", "Content-Container")
LABELS = (*(f"{name}({order})" for name in RELATIONS for order in ("e1,e2", "e2,e1")), "Other")


def counted(truths, answers):
    """Score from a confusion matrix with a separate column for correct relations in the wrong direction."""

    def bare(name):
        return name.split("(")[0]

    cells, wrong_direction = {}, {}
    for truth, answer in zip(truths, answers, strict=True):
        if bare(truth) == bare(answer) and truth != answer:
            wrong_direction[bare(truth)] = wrong_direction.get(bare(truth), 0) + 1
        else:
            cells[bare(answer), bare(truth)] = cells.get((bare(answer), bare(truth)), 0) + 1
    names = {bare(truth) for truth in truths}
    total = 0.0
    for name in names - {"Other"}:
        right = cells.get((name, name), 0)
        proposed = sum(number for (answer, _), number in cells.items() if answer == name)
        proposed += wrong_direction.get(name, 0)
        there = sum(bare(truth) == name for truth in truths)
        precision, recall = right / proposed if proposed else 0, right / there
        total += 2 * precision * recall / (precision + recall) if precision + recall else 0
    return total / len(names - {"Other"})


@pytest.mark.parametrize("seed", range(50))
def test_it_counts_as_the_scorer_counts(seed):
    draw = random.Random(seed)
    truths = [draw.choice(LABELS) for _ in range(draw.randint(4, 40))] + ["Cause-Effect(e1,e2)"]
    answers = [truth if draw.random() < 0.5 else draw.choice(LABELS) for truth in truths]
    assert relation_f1(truths, answers) == pytest.approx(counted(truths, answers), abs=1e-12)


def test_a_wrong_direction_is_wrong_twice():
    truths = ["Cause-Effect(e1,e2)"] * 3
    assert relation_f1(truths, truths) == 1.0
    # 2 correct, 3 predicted, 3 true
    assert relation_f1(truths, [*truths[:2], "Cause-Effect(e2,e1)"]) == pytest.approx(4 / 6)
    # control: predicted as Other, the relation is missed but not predicted
    assert relation_f1(truths, [*truths[:2], "Other"]) == pytest.approx(4 / 5)


def test_other_is_left_out_of_the_mean_but_answers_where_it_was_right_cost():
    truths = ["Cause-Effect(e1,e2)", "Other", "Other"]
    assert relation_f1(truths, ["Cause-Effect(e1,e2)", "Other", "Other"]) == 1.0
    assert relation_f1(truths, ["Cause-Effect(e1,e2)", "Cause-Effect(e1,e2)", "Other"]) == pytest.approx(2 / 3)
    assert relation_f1(truths, ["Other", "Other", "Other"]) == 0.0


def test_every_relation_weighs_the_same_and_those_the_truth_has_not_do_not_count():
    truths = ["Cause-Effect(e1,e2)"] * 9 + ["Component-Whole(e1,e2)"]
    answers = ["Cause-Effect(e1,e2)"] * 9 + ["Content-Container(e1,e2)"]
    assert relation_f1(truths, answers) == 0.5


def test_a_relation_without_direction_stands_for_itself():
    assert relation_f1(["owns", "owns", "Other"], ["owns", "Other", "Other"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("truths", "answers", "message"),
    [
        (["owns"], [], "there are 0 predictions for 1 examples"),
        (["Other"], ["owns"], "no example has a relation other than 'Other'"),
    ],
)
def test_invalid_labels(truths, answers, message):
    with pytest.raises(DataError, match=message):
        relation_f1(truths, answers)
