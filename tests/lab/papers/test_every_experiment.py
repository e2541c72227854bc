"""Every experiment: its trials, a report of the committed results, and a run at scale smoke (most of them slow)."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType

import pytest

from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.experiment import SCALES, Experiment
from unrolled.lab.papers.framework.figure_style import save
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect, run_experiment
from unrolled.lab.papers.framework.verdict import compare

NAMES = EXPERIMENTS.names()
RESULTS = Path(__file__).parents[3] / "results"
QUICK = {"cs577-lecture-5/memorising", "implicit-ngrams/triangle"}
"""Experiments that run at scale smoke in the fast suite: one without training, one that trains and decomposes."""
DRAWN = [pytest.param(name, marks=() if name in QUICK else pytest.mark.fuzz) for name in NAMES]
"""Of the others the figures of committed results are drawn, which takes a second each."""
SMOKE = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES]


@pytest.fixture(scope="module", params=SMOKE)
def smoked(request, tmp_path_factory):
    """Run an experiment once at scale smoke; tests with the same one follow each other."""
    store, experiment = ResultStore(tmp_path_factory.mktemp("results")), EXPERIMENTS.get(request.param)()
    return experiment, run_experiment(experiment, "smoke", store, command="a test"), store


def test_experiments_are_found_by_listing_the_folder():
    expected = {"cs224d-notes-4/gradients", "cs224d-notes-4/clipping-surface"}
    expected |= {"cs577-lecture-5/memorising", "cs577-lecture-5/agreement"}
    assert expected <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is(name):
    kind = EXPERIMENTS.get(name)
    paper, _, item = name.partition("/")
    assert paper
    assert item
    assert kind().paper == paper
    for text in (kind.title, kind.source):
        assert text
        assert "\n" not in text


@pytest.mark.parametrize("name", NAMES)
def test_each_has_trials_at_the_scales_that_it_names_and_none_at_another(name):
    experiment = EXPERIMENTS.get(name)()
    assert {"smoke", "cpu", "paper"} <= set(experiment.scales) <= set(SCALES)
    for scale in SCALES:
        assert bool(experiment.at(scale)) == (scale in experiment.scales)


@pytest.mark.parametrize("name", [name for name in NAMES if "day" in EXPERIMENTS.get(name).scales])
def test_items_of_scale_day_estimate_their_hours(name):
    experiment = EXPERIMENTS.get(name)()
    given = vars(type(experiment))
    if type(experiment).day_hours is Experiment.day_hours and "usual_hours" not in given:
        setting, hours = given["day_hours_by"]
        assert {trial.settings[setting] for trial in experiment.trials("day")} <= hours.keys()
    for trial in experiment.trials("day"):
        assert 0 < experiment.hours(trial, "day") < 24
        assert 0 < experiment.worth(trial) <= 1


@pytest.mark.parametrize(("name", "scale"), [(name, scale) for name in NAMES for scale in EXPERIMENTS.get(name).scales])
def test_trials_are_listed_at_every_scale_without_running_and_no_two_are_alike(name, scale):
    experiment = EXPERIMENTS.get(name)()
    trials = experiment.trials(scale)
    assert trials
    assert len({experiment.key(trial) for trial in trials}) == len(trials)
    assert len({trial.label for trial in trials}) == len(trials)
    for trial in trials:
        settings = json.loads(json.dumps(dict(trial.settings), allow_nan=False))
        assert settings == dict(trial.settings)  # JSON's types alone: what is kept is what was run
    again = EXPERIMENTS.get(name)().trials(scale)
    assert [trial.settings for trial in again] == [trial.settings for trial in trials]


def check_report(experiment, results, report):
    assert report.tables
    for table in report.tables:
        assert table.rows
        assert all(cell for row in table.cells() for cell in row)
    assert set(map(type, experiment.claims(results).values())) <= {bool, NoneType}
    assert {type(each.agrees) for each in compare(experiment, results, report)} <= {bool, NoneType}


def committed(experiment):
    """The committed results of each scale."""
    store = ResultStore(RESULTS)  # reads a file once
    found = [(scale, collect(experiment, scale, store)) for scale in ("cpu", "day", "paper")]
    return [(scale, results) for scale, results in found if results]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_committed_results_are_reported_and_so_are_a_part_of_them(name):
    experiment = EXPERIMENTS.get(name)()
    for scale, results in committed(experiment):
        check_report(experiment, results, experiment.report(results, scale))
        for some in (results[:1], results[-1:]):
            assert any(table.rows for table in experiment.report(some, scale).tables)
            experiment.claims(some)


def drawn(draw, scale, folder, key):
    """Draw a figure of committed results; those of scale cpu, which the pages show, are written as well."""
    if scale != "cpu":
        return draw()
    kept = []
    save(lambda: kept.append(draw()) or kept[0], folder, key)
    return kept[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_committed_results_can_be_drawn_and_bands_and_bars_of_error_have_a_caption(name, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    experiment = EXPERIMENTS.get(name)()
    for scale, results in {"cpu": [], **dict(committed(experiment))}.items():  # cpu: a report of nothing as well
        report = experiment.report(results, scale)
        assert set(report.captions) <= set(report.figures)
        for key, draw in report.figures.items():
            figure = drawn(draw, scale, tmp_path, key)
            assert figure.axes
            parts = {type(each).__name__ for axes in figure.axes for each in (*axes.collections, *axes.containers)}
            if parts & {"FillBetweenPolyCollection", "ErrorbarContainer"}:
                assert report.captions.get(key), f"{key} has bands or bars that nothing explains"


def test_a_smoke_run_has_tables_with_rows_and_is_found_again(smoked):
    experiment, results, store = smoked
    assert len(results) == len(experiment.trials("smoke"))
    check_report(experiment, results, experiment.report(results, "smoke"))
    found = collect(experiment, "smoke", store)
    assert [each.values for each in found] == [json.loads(json.dumps(each.values)) for each in results]


@pytest.mark.slow
def test_the_command_prints_the_tables_of_a_smoke_run_without_running_it_again(smoked, unrolled):
    experiment, _, store = smoked
    before = [each.read_bytes() for each in sorted(store.folder.rglob("*.jsonl"))]
    assert before
    done = unrolled("reproduce", experiment.name, "--scale", "smoke", "--results", store.folder)
    assert done.status == 0, done.err
    assert "these numbers show that the code runs, and nothing else" in done.out
    assert [each.read_bytes() for each in sorted(store.folder.rglob("*.jsonl"))] == before


@pytest.mark.slow
@pytest.mark.parametrize("smoked", DRAWN, indirect=True)
def test_the_command_draws_the_figures_of_a_smoke_run(smoked, unrolled, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    experiment, results, store = smoked
    before = [each.read_bytes() for each in sorted(store.folder.rglob("*.jsonl"))]
    folders = ("--results", store.folder, "--figures", tmp_path)
    assert unrolled("reproduce", experiment.name, "--scale", "smoke", *folders, "--svg").status == 0
    assert [each.read_bytes() for each in sorted(store.folder.rglob("*.jsonl"))] == before
    for file in experiment.report(results, "smoke").figures:
        assert (tmp_path / f"{file}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{file}.svg").read_text()


def test_what_has_been_run_is_reported_though_the_rest_has_not(smoked):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    experiment, results, _ = smoked
    for some in (results[:1], results[-1:]):
        report = experiment.report(some, "smoke")
        assert any(table.rows for table in report.tables)
        for table in report.tables:
            table.markdown()
        for draw in report.figures.values():
            draw()
