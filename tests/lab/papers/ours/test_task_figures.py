"""Figures of every task: goals, and those that are missed by name."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.tasks import TaskFigures
from unrolled.lab.tasks import TASKS

GOOD = {
    "accuracy": 0.9,
    "f1": 0.9,
    "mrr": 0.9,
    "bleu": 30.0,
    "perplexity": 90.0,
    "bpc": 1.4,
    "pearson": 0.5,
    "wcpa": 1.0,
}


def missed(seconds=60.0, **changes):
    values = {f"test_{name}": value for name, value in {**GOOD, **changes}.items()}
    results = [
        Result(trial, {**values, "seconds": seconds, "parameters": 5.0}, 1.0, "2026-01-01", "a test", "a machine", {})
        for trial in TaskFigures().trials("cpu")
    ]
    return [claim for claim, holds in TaskFigures().claims(results).items() if not holds]


RECORDED = {"brackets", "chars", "classify", "lm", "rank", "regress", "relate", "tag", "translate"}
"""The tasks that there were when the figures were recorded: a later task adds no trial."""


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_every_recorded_task_has_a_row(scale):
    tasks = {trial.label.removeprefix("unrolled train ").split()[0] for trial in TaskFigures().trials(scale)}
    assert tasks == RECORDED <= set(TASKS.names())


def test_every_goal_that_is_reached_holds():
    assert missed() == missed(pearson=-1.0) == []  # no goal is set for the correlation


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"perplexity": 116.0}, "--dropout 0.3 --epochs 6`: test perplexity at most 115"),
        ({"bleu": 19.9}, "--data multi30k`: test bleu at least 20"),
        ({"wcpa": 0.99}, "--data dyck`: test wcpa at least 1"),
    ],
)
def test_a_figure_that_is_missed_is_named(changes, said):
    (found,) = missed(**changes)
    assert found.endswith(said)


def test_a_time_that_is_missed_is_named_where_one_was_set():
    late = missed(seconds=60.0 * 31)
    assert [each.rpartition(": ")[2] for each in late] == [
        f"at most {minutes} minutes of training" for minutes in (15, 15, 30)
    ]


def test_what_an_account_leaves_over_is_held_against_what_it_may():
    trial = TaskFigures().trials("cpu")[0]
    values = {"test_accuracy": 0.9, "seconds": 60.0, "parameters": 5.0}
    for left, holds in ((3e-7, True), (2e-4, False)):
        result = Result(trial, {**values, "remainder": left}, 1.0, "2026-01-01", "a test", "a machine", {})
        report = TaskFigures().report([result], "cpu")
        assert report.tables[0].cells()[0][-1] == f"{left:.1e}"
        claims = TaskFigures().claims([result])
        assert [kept for claim, kept in claims.items() if "remainder of the logit" in claim] == [holds]
