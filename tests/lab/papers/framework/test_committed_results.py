"""The committed results: each belongs to a listed trial, and the findings speak of exactly the results beside them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from unrolled.cells import CELLS
from unrolled.expansions import EXPANSIONS
from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.experiment import SCALES
from unrolled.lab.papers.framework.findings import fingerprint, read_findings
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect
from unrolled.lab.papers.framework.strength import strength_section
from unrolled.lab.papers.framework.verdict import headline

RESULTS = Path(__file__).parents[4] / "results"
FILES = sorted(RESULTS.glob("*/*.jsonl"))
STORE = ResultStore(RESULTS)  # reads a file once for all tests


def test_there_are_results():
    assert len(FILES) >= 30


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_findings_speak_of_the_committed_results(name):
    experiment = EXPERIMENTS.get(name)()
    written = read_findings(RESULTS, experiment)
    for scale in ("cpu", "day", "paper"):
        results = collect(experiment, scale, STORE)
        digits, text = written.get(scale, (None, ""))
        assert bool(results) == bool(text), f"results/{name}.md: findings and results at scale {scale} go together"
        if results:
            found = fingerprint(experiment, results)
            assert digits == found, (
                f"stale findings: rewrite results/{name}.md for the fingerprint {scale} {found} if results were added; "
                "if recorded trials were changed, take the change back"
            )


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_what_an_item_names_of_its_first_table_is_there(name):
    experiment = EXPERIMENTS.get(name)()
    results = collect(experiment, "cpu", STORE)
    report = experiment.report(results, "cpu")
    assert set(experiment.compared_columns) <= set(report.tables[0].columns)
    assert experiment.headline is None or headline(experiment, results, report) is not None


def test_every_item_has_a_page_and_a_row_of_the_summary():
    pages = RESULTS.parent / "docs" / "results"
    summary = (pages / "README.md").read_text()
    for path in FILES:
        page = f"{path.parent.name}-{path.stem}.md"
        assert f"]({page})" in summary
        assert (pages / page).read_text().startswith("# ")
    linked = re.findall(r"!\[.*\]\((.+)\)", "".join(path.read_text() for path in pages.glob("*.md")))
    assert {path.name for path in (pages / "figures").iterdir()} == {Path(link).name for link in linked}


def test_the_summary_counts_the_trials_that_ran_and_the_hours_of_the_others():
    *_, table = strength_section([EXPERIMENTS.get(name)() for name in EXPERIMENTS.names()], STORE)
    assert table in (RESULTS.parent / "docs" / "results" / "README.md").read_text(), (
        "the table is stale: write the pages with `unrolled reproduce --write docs/results`"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_result_belongs_to_a_listed_trial_or_is_marked_as_history(path):
    experiment = EXPERIMENTS.get(f"{path.parent.name}/{path.stem}")()
    listed = {(scale, experiment.key(each)) for scale in SCALES for each in experiment.at(scale)}
    for key, record in STORE.records(experiment.name).items():
        assert key in listed or record.get("history"), (
            f"{record['label']}, scale {key[0]}: the experiment lists no such trial; recorded trials are frozen: take "
            'a change of their settings back and list others beside them, or add "history": true to the result'
        )
    assert path.read_text().count("\n") == len(STORE.records(experiment.name))  # no trial twice


@pytest.fixture(scope="module")
def history():
    """The commits that lead to this one, in twelve digits."""
    try:
        told = subprocess.run(
            ["git", "rev-list", "HEAD"], cwd=RESULTS, capture_output=True, text=True, check=True, timeout=60
        )
        shallow = subprocess.run(
            ["git", "rev-parse", "--is-shallow-repository"], cwd=RESULTS, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not in a git checkout")
    if shallow.stdout.strip() == "true":
        pytest.skip("a shallow clone has no history")
    return {commit[:12] for commit in told.stdout.split()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_result_names_its_command_machine_time_and_a_commit_of_the_history(path, history):
    for record in STORE.records(f"{path.parent.name}/{path.stem}").values():
        named = {record["versions"].get(name) for name in ("commit", "recorded")}
        assert named & history, f"{record['label']} names no commit of the history"
        assert record["command"].startswith("unrolled ")
        assert record["machine"]
        assert record["seconds"] >= 0


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_a_new_cell_or_expansion_adds_no_trial(name, monkeypatch):
    def listed():
        experiment = EXPERIMENTS.get(name)()
        return [json.dumps(dict(trial.settings)) for scale in SCALES for trial in experiment.at(scale)]

    before = listed()
    for zoo, like in ((CELLS, "gru"), (EXPANSIONS, "path")):
        monkeypatch.setitem(zoo.__dict__, "members", {**zoo.members, "a_new_member": zoo.get(like)})
    assert "a_new_member" in CELLS.names()
    assert listed() == before
