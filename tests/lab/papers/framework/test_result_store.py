"""Results on disk: appended whole, found again, shared by processes, imported from the earlier format."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from unrolled.errors import DataError
from unrolled.lab.papers.framework.experiment import Result, Trial
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect, run_experiment

ITEM = "arithmetic/squares"


def lines_of(store):
    return store.path(ITEM).read_text().splitlines()


def result(trial, value):
    return Result(trial, {"square": value}, 1.0, "2026-01-01", "a test", "a machine", {"python": "3"})


def test_a_line_says_where_a_result_comes_from(store, arithmetic):
    run_experiment(arithmetic.Squares(), "smoke", store, command="unrolled reproduce arithmetic/squares")
    record = json.loads(lines_of(store)[0])
    assert list(record) == [
        "format", "experiment", "version", "scale", "label", "settings", "values", "seconds", "when", "command",
        "machine", "versions",
    ]  # fmt: skip
    assert record["command"] == "unrolled reproduce arithmetic/squares"
    assert record["settings"] == {"n": 1, "seed": 0}
    assert record["values"] == {"square": 1}
    assert {"python", "torch"} <= set(record["versions"])
    assert "cores" in record["machine"]


def test_values_are_read_as_they_were_kept(store, arithmetic):
    values = {"numbers": [1, -2.5, 3e-20, None], "text": "[\n 1,\n 2]", "nested": [[1], ["ä"]], "none": []}
    trial = arithmetic.Squares().trials("smoke")[0]
    store.keep(arithmetic.Squares(), "smoke", Result(trial, values, 1.0, "2026-01-01", "c", "m", {}))
    assert ResultStore(store.folder).find(arithmetic.Squares(), "smoke", trial).values == values
    assert len(lines_of(store)) == 1


def test_of_two_lines_of_one_trial_the_last_counts(store, arithmetic):
    trial = arithmetic.Squares().trials("smoke")[0]
    for value in (1, 2):
        store.keep(arithmetic.Squares(), "smoke", result(trial, value))
    assert len(lines_of(store)) == 2
    assert store.find(arithmetic.Squares(), "smoke", trial)["square"] == 2


def test_a_last_line_that_was_cut_off_is_ignored_with_a_warning_and_then_removed(store, arithmetic):
    run_experiment(arithmetic.Squares(), "smoke", store, command="c")
    path = store.path(ITEM)
    path.write_bytes(path.read_bytes()[:-20])
    again = arithmetic.Squares()
    with pytest.warns(UserWarning, match=r"squares\.jsonl: the last line is incomplete .* runs again"):
        run_experiment(again, "smoke", store, command="c")
    assert again.ran == [3]
    assert [json.loads(line)["settings"]["n"] for line in lines_of(store)] == [1, 2, 3]


@pytest.mark.parametrize(("text", "message"), [("{", "line 2: not whole JSON"), ('{"a": 1}', "line 2: not a result")])
def test_a_line_that_is_no_result_is_named(store, text, message, arithmetic):
    run_experiment(arithmetic.Squares(), "smoke", store, command="c")
    first, _, third = lines_of(store)
    store.path(ITEM).write_text(f"{first}\n{text}\n{third}\n")
    with pytest.raises(DataError, match=message):
        collect(arithmetic.Squares(), "smoke", ResultStore(store.folder))


def _append(experiment, folder, first):
    store = ResultStore(folder)
    for n in range(first, first + 40):
        store.keep(experiment, "cpu", result(Trial(f"n={n}", {"n": n, "filler": "x" * 9000}), n * n))


def test_processes_that_share_a_folder_lose_no_result(store, arithmetic):
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_append, args=(arithmetic.Squares(), store.folder, 40 * number)) for number in range(3)
    ]
    for process in processes:
        process.start()
    seen = 0
    while any(process.is_alive() for process in processes):
        seen, before = len(store.records(ITEM)), seen  # whole lines only, or this raises
        assert seen >= before
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted(json.loads(line)["values"]["square"] for line in lines_of(store)) == [n * n for n in range(120)]


def old_format(folder, results):
    """Write results as earlier versions did, one JSON file for each trial."""
    for trial, value in results:
        path = folder / ITEM / "smoke" / f"{trial.key(ITEM, 1)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "format": "unrolled-result", "experiment": ITEM, "version": 1, "scale": "smoke",
            "label": trial.label, "settings": dict(trial.settings), "values": {"square": value}, "seconds": 1.0,
            "when": "2026-01-01", "command": "an earlier command", "machine": "m", "versions": {},
        }  # fmt: skip
        path.write_text(json.dumps(record, indent=1))


def test_results_of_the_earlier_format_are_found(store, arithmetic):
    trials = arithmetic.Squares().trials("smoke")
    old_format(store.folder, zip(trials[:2], (1, 4), strict=True))
    again = arithmetic.Squares()
    results = run_experiment(again, "smoke", store, command="c")
    assert again.ran == [3]
    assert [each["square"] for each in results] == [1, 4, 9]
    assert results[0].command == "an earlier command"


def test_results_are_imported_once_from_either_format(store, tmp_path, arithmetic):
    trials = arithmetic.Squares().trials("smoke")
    old_format(tmp_path / "old", zip(trials[:2], (1, 4), strict=True))
    run_experiment(arithmetic.Squares(), "smoke", ResultStore(tmp_path / "new"), command="c")
    assert store.import_from(tmp_path / "old") == 2
    assert store.import_from(tmp_path / "old") == 0
    assert store.import_from(tmp_path / "new") == 1
    assert [each["square"] for each in collect(arithmetic.Squares(), "smoke", store)] == [1, 4, 9]
    assert len(list((tmp_path / "old").rglob("*.json"))) == 2  # another folder stays as it is


def test_files_of_the_earlier_format_in_the_folder_itself_move_into_the_items_file(store, arithmetic):
    trials = arithmetic.Squares().trials("smoke")
    old_format(store.folder, zip(trials, (1, 4, 9), strict=True))
    assert store.import_from(store.folder) == 3
    assert not list(store.folder.rglob("*.json"))
    assert len(lines_of(store)) == 3


def test_a_file_of_the_earlier_format_that_is_no_result_is_named(store, arithmetic):
    old_format(store.folder, [(arithmetic.Squares().trials("smoke")[0], 1)])
    (path,) = store.folder.rglob("*.json")
    path.write_text("{")
    with pytest.raises(DataError, match=r"\.json: not whole JSON .*remove it to run the trial again"):
        collect(arithmetic.Squares(), "smoke", store)
