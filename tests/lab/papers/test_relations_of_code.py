"""Relations as the authors' code learns them: word vectors from N(0, 1), and F1 over all classes."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.synthetic_corpora import relations
from unrolled.lab.papers.implicit_ngrams.relations_of_code import AllClasses, RelationsOfCode
from unrolled.lab.tasks.relate import Relate


def test_word_vectors_are_ten_times_as_wide_as_those_of_the_task():
    corpus, deviations = relations((64, 8, 8)), []
    for kind in (AllClasses, Relate):
        torch.manual_seed(0)
        weight = kind.from_corpus(corpus, kind.Architecture(embedding=300)).build().embedding.weight.detach()
        assert weight[0].abs().max() == 0  # padding
        deviations.append(float(weight[1:].std()))
    assert deviations == pytest.approx([1.0, 0.1], rel=0.03)


def test_all_classes_count_in_the_one_f1_and_other_does_not_in_the_other():
    corpus = relations((64, 8, 8))
    task = AllClasses.from_corpus(corpus, AllClasses.Architecture())
    truths = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other", "Other"]
    answers = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Cause-Effect(e1,e2)", "Other"]
    found = task.scores(truths, answers)
    assert found["all_f1"] == pytest.approx((2 / 3 + 1 + 2 / 3) / 3)
    assert found["f1"] == pytest.approx(4 / 5)  # of both directions together
    assert found["accuracy"] == pytest.approx(3 / 4)
    assert task.metrics[0].name == "all_f1"  # by which the best epoch is chosen


def test_f1_over_all_classes_stands_beside_the_published_one():
    experiment = RelationsOfCode()
    results = [
        Result(trial, {"dev_all_f1": 0.6, "test_all_f1": 0.5, "dev_f1": 0.7, "test_f1": 0.65}, 1.0, "", "", "", {})
        for trial in experiment.trials("day")
    ]
    (table,) = experiment.report(results, "day").tables
    rows = {row[0]: row[1:] for row in table.cells()}
    assert rows["GRU"] == ["60.0 (67.2)", "50.0 (62.2)", "70.0 (–)", "65.0 (–)"]
    assert rows["MVM-E"][:2] == ["60.0 (–)", "50.0 (–)"]
    assert "MM" not in rows
