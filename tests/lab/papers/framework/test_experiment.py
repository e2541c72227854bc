"""Experiments: trials that run once, findings, tables, verdicts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from unrolled.errors import UsageError
from unrolled.lab.papers.framework import runner
from unrolled.lab.papers.framework.experiment import Report, Result, Trial, where
from unrolled.lab.papers.framework.findings import current_findings, fingerprint
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.runner import collect, run_experiment
from unrolled.lab.papers.framework.table import Number, Table, cell
from unrolled.lab.papers.framework.verdict import Comparison, agreement, compare, headline, is_complete, verdict
from watched_trials import WatchedTrials


def test_an_experiment_that_was_stopped_goes_on_where_it_was(store, arithmetic):
    with pytest.raises(RuntimeError, match="stopped"):
        run_experiment(arithmetic.Squares(broken=True), "smoke", store, command="c")
    again, watching = arithmetic.Squares(), WatchedTrials()
    results = run_experiment(again, "smoke", store, command="c", progress=watching)
    assert again.ran == [3]
    assert watching.seen == [("n=1", 1, 3, True), ("n=2", 2, 3, True), ("n=3", 3, 3, False)]
    assert watching.said == ["squaring"]
    assert [result["square"] for result in results] == [1, 4, 9]
    assert [path.name for path in store.folder.rglob("*") if path.is_file()] == ["squares.jsonl"]
    assert not list(store.folder.rglob("*.work"))


def test_a_result_names_the_code_with_which_its_trial_began(store, arithmetic, monkeypatch):
    class Moving(arithmetic.Squares):
        def run(self, trial, setup):
            monkeypatch.setattr(runner, "versions", lambda: {"commit": "later"})
            return super().run(trial, setup)

    monkeypatch.setattr(runner, "versions", lambda: {"commit": "first"})
    results = run_experiment(Moving(), "smoke", store, command="c")
    assert [result.versions["commit"] for result in results] == ["first", "later", "later"]


def test_another_version_of_an_experiment_is_run_anew_and_another_scale_too(store, arithmetic):
    run_experiment(arithmetic.Squares(), "smoke", store, command="c")
    newer = arithmetic.Squares()
    newer.version = 2
    run_experiment(newer, "smoke", store, command="c")
    assert newer.ran == [1, 2, 3]
    assert collect(arithmetic.Squares(), "cpu", store) == []


def test_a_scale_that_an_experiment_does_not_have_has_no_trials(store, arithmetic):
    experiment = arithmetic.Squares()
    assert experiment.at("day") == ()
    assert run_experiment(experiment, "day", store, command="c") == collect(experiment, "day", store) == []
    assert not store.folder.exists()
    experiment.scales = ("smoke", "cpu", "day", "paper")
    assert len(experiment.at("day")) == 8


def test_the_key_of_a_trial_is_made_of_its_settings_and_not_of_its_label():
    one = Trial("a", {"x": 1, "y": 2.0})
    assert one.key("e", 1) == Trial("b", {"y": 2.0, "x": 1}).key("e", 1)
    assert len({one.key("e", 1), one.key("e", 2), one.key("f", 1), Trial("a", {"x": 2, "y": 2.0}).key("e", 1)}) == 4


def test_the_seed_of_a_trial_is_its_own_or_its_trainings():
    assert Trial("a", {"seed": 3}).seed == 3
    assert Trial("a", {"training": {"seed": 4}}).seed == 4
    assert Trial("a", {}).seed is None


def test_findings_about_other_results_are_not_shown(store, arithmetic, write_findings):
    results = run_experiment(arithmetic.Squares(), "smoke", store, command="c")
    assert current_findings(store.folder, arithmetic.Squares(), "smoke", results) is None
    write_findings(store, arithmetic.Squares(), "smoke", results, "- Squares grow.")
    assert current_findings(store.folder, arithmetic.Squares(), "smoke", results) == "- Squares grow."
    assert current_findings(store.folder, arithmetic.Squares(), "smoke", results[::-1]) == "- Squares grow."
    assert current_findings(store.folder, arithmetic.Squares(), "cpu", results) is None
    changed = [replace(results[0], values={"square": 2}), *results[1:]]
    for others in (results[1:], changed):
        note = current_findings(store.folder, arithmetic.Squares(), "smoke", others) or ""
        assert "speak of other results" in note
        assert note.endswith(f"smoke {fingerprint(arithmetic.Squares(), others)}")


def test_a_number_is_a_mean_with_its_deviation_beside_the_published_one():
    assert str(Number([0.5], digits=1)) == "0.5"
    assert str(Number([80.0, 90.0], theirs=81.0, digits=1)) == "85.0 ± 7.1 (81.0)"
    assert str(Number([0.8514], theirs=0.81, digits=1, percent=True)) == "85.1 (81.0)"
    assert str(Number([], theirs=2.0)) == "– (2.00)"
    assert str(Number([2.18e10], digits=1, percent=True)) == "2.2e+12"
    assert str(Number([2.18e4], digits=1, percent=True)) == "2180000.0"
    assert str(Number([2.18e10], digits=0)) == "21800000000"  # a count
    assert Number([3.0], theirs=2.0).difference == 1.0
    assert Number([3.0]).difference is None
    assert Number([], theirs=3.0).difference is None


def test_a_cell_says_what_failed():
    assert str(cell(Number([0.8], 0.9, digits=1, percent=True), ran=True)) == "80.0 (90.0)"
    assert str(cell(Number((), 0.9, digits=1, percent=True), ran=True)) == "diverged (90.0)"
    assert str(cell(Number(), ran=True)) == "diverged (–)"
    assert str(cell(Number((), 0.9, digits=1), ran=False)) == "– (0.9)"
    assert str(cell(Number([0.8], digits=1), ran=True)) == "0.8 (–)"


def test_a_page_shows_tokens_that_look_like_tags():
    def shown(markdown):
        return MarkdownIt("commonmark").enable("table").render(markdown)

    written = Table("with <eos>", ("a", "as <b>"), [("<unk>", Number([1.0]))]).markdown()
    assert all(token in shown(written) for token in ("&lt;eos&gt;", "&lt;b&gt;", "&lt;unk&gt;"))
    assert "&lt;unk&gt;" not in shown(written.replace("\\", ""))  # a tag: browsers show nothing of it


def test_a_cell_cannot_break_the_table_and_a_row_must_fit_it():
    table = Table("t", ("a", "b"), [("x|y\nz", Number([1.0]))])
    assert table.markdown().splitlines()[-1] == r"| x\|y z | 1.00 |"
    with pytest.raises(UsageError, match="a row of 't' has 1 cells; expected 2"):
        Table("t", ("a", "b"), [("x",)])


@pytest.mark.parametrize(
    ("number", "agrees"),
    [
        (Number([0.84, 0.86], 0.865, percent=True), True),  # by the mean, 1.5 points away
        (Number([0.85], 0.866, percent=True), False),
        (Number([107.9], 100.0), True),
        (Number([108.1], 100.0), False),
        (Number([91.9], 100.0), False),  # better is not the same
        (Number([-0.93], -1.0), True),
        (Number([4.794 + math.log(1.079)], 4.794, unit="nats"), True),
        (Number([4.794 - math.log(1.081)], 4.794, unit="nats"), False),
        (Number([1.283 + math.log2(1.079)], 1.283, unit="bits"), True),
        (Number([1.283 + math.log2(1.081)], 1.283, unit="bits"), False),
        (Number([1.37], 1.283), True),  # as if it were a perplexity
        (Number([0.9]), None),
        (Number([], 0.9), None),
        (cell(Number([], 0.9), ran=True), False),
    ],
)
def test_a_number_agrees_within_the_tolerance_of_its_unit(number, agrees):
    assert number.agrees is agrees


def test_the_verdict_is_that_of_the_first_tables_published_numbers_unless_there_are_claims(arithmetic):
    class Claiming(arithmetic.Squares):
        def claims(self, results):
            return {"squares grow": len(results) < 3}

    good, bad, ours = Number([1.0], 1.0), Number([2.0], 1.0), Number([1.0])
    first = Table("t", ("model", "text", "score", "other"), [("A", "x", good, ours), ("A", "y", bad, "said")])
    report = Report([first, Table("t", ("model", "score"), [("A", bad)])])
    by_numbers = compare(arithmetic.Squares(), [], report)
    assert by_numbers == [Comparison("A, x, score: 1.00 (1.00)", True), Comparison("A, y, score: 2.00 (1.00)", False)]
    assert verdict(by_numbers, complete=True) == "partly"
    assert compare(Claiming(), [], report) == [Comparison("squares grow", True)]
    assert verdict(compare(Claiming(), [], report), complete=True) == "reproduced"
    earlier = arithmetic.Squares()
    earlier.published = False
    assert verdict(compare(earlier, [], report), complete=True) == "nothing to compare"
    one, other = Comparison("a", True), Comparison("b", False)
    assert verdict([one, other, other], complete=True) == "not reproduced"


def test_an_item_is_reproduced_only_if_all_trials_of_its_first_seed_have_run(arithmetic):
    experiment, agreeing = arithmetic.Squares(), [Comparison("a", True)]
    results = [Result(trial, {}, 1.0, "", "", "", {}) for trial in experiment.trials("cpu")]
    assert is_complete(experiment, "cpu", results)
    assert not is_complete(experiment, "cpu", results[1:])
    assert verdict(agreeing, complete=True) == "reproduced"
    assert verdict(agreeing, complete=False) == "partly"
    assert verdict([Comparison("a", False)], complete=False) == "not reproduced"

    class Seeded(arithmetic.Squares):
        def trials(self, scale):
            return [Trial(f"seed {seed}", {"seed": seed}) for seed in (0, 1)]

    first, _ = Seeded().trials("cpu")
    assert is_complete(Seeded(), "cpu", [Result(first, {}, 1.0, "", "", "", {})])  # further seeds may be missing


def test_a_claim_that_is_not_tested_counts_neither_way_and_is_said(arithmetic):
    class Untrained(arithmetic.Squares):
        def claims(self, results):
            return {"squares grow": None, "cubes grow": True}

    found = compare(Untrained(), [], Report([Table("t", ("model",), [("A",)])]))
    assert found == [Comparison("squares grow", None), Comparison("cubes grow", True)]
    assert verdict(found, complete=True) == "partly"
    assert agreement(found) == "1 of 1 comparisons agree, 1 not tested"
    assert verdict([*found, Comparison("a", False), Comparison("b", False)], complete=True) == "not reproduced"
    assert verdict(found[:1], complete=True) == "nothing to compare"
    assert agreement(found[1:]) == "1 of 1 comparisons agree"


@pytest.mark.parametrize(("classes", "least"), [(2, 0.6), (4, 0.4)])
def test_a_training_has_learned_that_is_right_in_a_fifth_of_what_a_guess_gets_wrong(classes, least):
    trial = Trial("t", {})
    results = [
        Result(trial, {"test_accuracy": least + more}, 1.0, "2026-01-01", "c", "m", {}) for more in (-0.01, 0.01, 0.3)
    ]
    assert learned(results, classes) == results[1:]
    assert not learned(results[:1], classes)


def test_the_summary_shows_the_first_comparison_or_the_number_that_an_item_names(arithmetic):
    numbers = [Number([1.0]), Number([2.0], 1.0), Number([3.0], 3.0)]
    report = Report([Table("t", ("model", "a", "b", "c"), [("A", *numbers)])])
    experiment = arithmetic.Squares()
    assert headline(experiment, [], report) == ("A, b", numbers[1])
    experiment.compared_columns = ("c",)
    assert headline(experiment, [], report) == ("A, c", numbers[2])
    assert compare(experiment, [], report) == [Comparison("A, c: 3.00 (3.00)", True)]
    experiment.headline = ("A", "a")
    assert headline(experiment, [], report) == ("A, a", numbers[0])
    experiment.headline = ("A", "c")
    assert headline(experiment, [], report) == ("A, c", numbers[2])
    experiment.headline = ("missing here", "A", "c")  # the first of several rows that the table has
    assert headline(experiment, [], report) == ("A, c", numbers[2])
    experiment.headline = ("missing here", "c")
    assert headline(experiment, [], report) is None
    report = Report([Table("t", ("model", "text", "a"), [("A", "x", numbers[1])])])
    experiment.headline = ("A, x", "a")  # found though the first cell alone would tell the row
    assert headline(experiment, [], report) == ("A, x, a", numbers[1])
    experiment.headline = ("nothing", "c")
    assert headline(experiment, [], report) is None


def test_results_are_picked_by_the_settings_of_their_trials(store, arithmetic):
    results = run_experiment(arithmetic.Squares(), "smoke", store, command="c")
    assert [result["square"] for result in where(results, n=2)] == [4]
    assert where(results) == list(results)
    assert not where(results, n=9)
