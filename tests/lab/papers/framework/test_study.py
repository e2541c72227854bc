from __future__ import annotations

import json
from dataclasses import replace

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.papers.framework.experiment import Experiment, Report, Trial, where
from unrolled.lab.papers.framework.findings import current_findings, fingerprint
from unrolled.lab.papers.framework.result_store import Archive
from unrolled.lab.papers.framework.runner import collect, run_experiment
from unrolled.lab.papers.framework.summary import summarise
from unrolled.lab.papers.framework.table import Number, Table, compare


class Squares(Experiment):
    """Squares numbers; trial 3 fails as long as it is told to."""

    name = "arithmetic/squares"
    title = "Squares"
    source = "ours"

    def __init__(self, broken=False):
        self.broken = broken
        self.ran = []

    def trials(self, scale):
        return [Trial(f"n={n}", {"n": n}) for n in range(1, 4 if scale == "smoke" else 9)]

    def run(self, trial, bench):
        assert bench.room.is_dir()
        bench.say("squaring")
        if self.broken and trial.settings["n"] == 3:
            raise RuntimeError("stopped")
        self.ran.append(trial.settings["n"])
        return {"square": trial.settings["n"] ** 2}

    def report(self, results, _scale):
        rows = [(result.trial.label, Number([result["square"]], theirs=4.0)) for result in results]
        return Report([Table("squares", ("n", "square"), rows)])


class Watching:
    def __init__(self):
        self.seen, self.said = [], []

    def trial(self, trial, number, total, found):
        self.seen.append((trial.label, number, total, found))

    def say(self, line):
        self.said.append(line)


def write_findings(archive, experiment, scale, results, text):
    path = archive.folder / f"{experiment.name}.md"
    path.write_text(f"<!-- fingerprint: {scale} {fingerprint(experiment, results)} -->\n{text}\n")


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "results")


def test_an_experiment_that_was_stopped_goes_on_where_it_was(archive):
    with pytest.raises(RuntimeError, match="stopped"):
        run_experiment(Squares(broken=True), "smoke", archive, command="c")
    again, watching = Squares(), Watching()
    results = run_experiment(again, "smoke", archive, command="c", onlooker=watching)
    assert again.ran == [3]
    assert watching.seen == [("n=1", 1, 3, True), ("n=2", 2, 3, True), ("n=3", 3, 3, False)]
    assert watching.said == ["squaring"]
    assert [result["square"] for result in results] == [1, 4, 9]
    assert not list(archive.folder.rglob("*.work"))  # nothing but results is left


def test_another_version_of_an_experiment_is_run_anew_and_another_scale_too(archive):
    run_experiment(Squares(), "smoke", archive, command="c")
    newer = Squares()
    newer.version = 2
    run_experiment(newer, "smoke", archive, command="c")
    assert newer.ran == [1, 2, 3]
    assert collect(Squares(), "cpu", archive) == []


def test_the_key_of_a_trial_is_made_of_its_settings_and_not_of_its_label():
    one = Trial("a", {"x": 1, "y": 2.0})
    assert one.key("e", 1) == Trial("b", {"y": 2.0, "x": 1}).key("e", 1)
    assert len({one.key("e", 1), one.key("e", 2), one.key("f", 1), Trial("a", {"x": 2, "y": 2.0}).key("e", 1)}) == 4


def test_a_result_says_where_it_comes_from(archive):
    (result, *_) = run_experiment(Squares(), "smoke", archive, command="unrolled reproduce arithmetic/squares")
    record = json.loads(archive.path(Squares(), "smoke", result.trial).read_text())
    assert record["command"] == "unrolled reproduce arithmetic/squares"
    assert record["settings"] == {"n": 1}
    assert record["values"] == {"square": 1}
    assert "torch" in record["versions"]
    assert "cores" in record["machine"]
    assert collect(Squares(), "smoke", archive)[0].values == result.values


def test_a_list_of_numbers_stands_on_one_line_and_is_read_as_it_was(archive):
    class Lists(Squares):
        def run(self, _trial, _bench):
            return {"numbers": [1, -2.5, 3e-20, None], "text": "[\n 1,\n 2]", "nested": [[1], ["a"]], "none": []}

    (result, *_) = run_experiment(Lists(), "smoke", archive, command="c")
    assert collect(Lists(), "smoke", archive)[0].values == result.values
    lines = archive.path(Lists(), "smoke", result.trial).read_text().splitlines()
    assert '  "numbers": [ 1, -2.5, 3e-20, null ],' in lines


@pytest.mark.parametrize(("text", "message"), [("{", "expected whole JSON"), ('{"a": 1}', "is not ours")])
def test_a_file_that_is_no_result_is_named(archive, text, message):
    experiment = Squares()
    path = archive.path(experiment, "smoke", experiment.trials("smoke")[0])
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        collect(experiment, "smoke", archive)


def test_the_page_has_what_was_run_and_names_what_was_not(archive):
    results = run_experiment(Squares(), "smoke", archive, command="unrolled reproduce")
    write_findings(archive, Squares(), "smoke", results, "- Squares grow.")

    class Cubes(Squares):
        name = "arithmetic/cubes"
        title = "Cubes"

    page = summarise([Squares(), Cubes()], archive, ["smoke", "cpu"])
    assert "| n=3 | 9.00 (4.00) |" in page
    assert "- Squares grow." in page
    assert "Scale smoke, 3 trials" in page
    assert "## Not run yet\n\n- `arithmetic/cubes`: Cubes" in page
    assert "Scale cpu" not in page


def test_findings_about_other_results_are_not_shown(archive):
    results = run_experiment(Squares(), "smoke", archive, command="c")
    assert current_findings(archive.folder, Squares(), "smoke", results) is None
    write_findings(archive, Squares(), "smoke", results, "- Squares grow.")
    assert current_findings(archive.folder, Squares(), "smoke", results) == "- Squares grow."
    assert current_findings(archive.folder, Squares(), "smoke", results[::-1]) == "- Squares grow."
    assert current_findings(archive.folder, Squares(), "cpu", results) is None
    changed = [replace(results[0], values={"square": 2}), *results[1:]]
    for others in (results[1:], changed):
        note = current_findings(archive.folder, Squares(), "smoke", others) or ""
        assert "speak of other results" in note
        assert note.endswith(f"smoke {fingerprint(Squares(), others)}")


def test_a_number_is_a_mean_with_its_deviation_beside_the_published_one():
    assert str(Number([0.5], digits=1)) == "0.5"
    assert str(Number([80.0, 90.0], theirs=81.0, digits=1)) == "85.0 ± 7.1 (81.0)"
    assert str(Number([0.8514], theirs=0.81, digits=1, percent=True)) == "85.1 (81.0)"
    assert str(Number([], theirs=2.0)) == "– (2.00)"
    assert Number([3.0], theirs=2.0).difference == 1.0
    assert Number([3.0]).difference is None
    assert Number([], theirs=3.0).difference is None


def test_a_difference_is_said_in_plain_words():
    def said(ours, theirs, higher=True):
        return compare("GRU", Number(ours, theirs, digits=1), "points", higher=higher, close=0.5)

    assert said([85.0], 83.0) == "GRU: better than published by 2.0 points."
    assert said([85.0], 83.0, higher=False) == "GRU: worse than published by 2.0 points."
    assert said([83.2], 83.0) == "GRU: as published, within 0.2 points."
    assert said([], 83.0) == "GRU: not run at this scale."
    assert said([83.0], None) == "GRU: no published figure."


def test_a_cell_cannot_break_the_table_and_a_row_must_fit_it():
    table = Table("t", ("a", "b"), [("x|y\nz", Number([1.0]))])
    assert table.markdown().splitlines()[-1] == r"| x\|y z | 1.00 |"
    with pytest.raises(UsageError, match="a row of 't' has 1 cells; expected 2"):
        Table("t", ("a", "b"), [("x",)])


def test_results_are_picked_by_the_settings_of_their_trials(archive):
    results = run_experiment(Squares(), "smoke", archive, command="c")
    assert [result["square"] for result in where(results, n=2)] == [4]
    assert where(results) == list(results)
    assert not where(results, n=9)
