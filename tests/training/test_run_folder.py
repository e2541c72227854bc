from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from unrolled.errors import DataError, FileError
from unrolled.training import run_folder
from unrolled.training.run_folder import check_destination, load_run, save_run


@pytest.fixture
def folder(run, tmp_path):
    save_run(run, tmp_path / "deep" / "run")
    return tmp_path / "deep" / "run"


def test_a_run_comes_back_as_it_was(run, folder):
    again = load_run(folder)
    assert (again.config, again.settings, again.vocabulary) == (run.config, run.settings, run.vocabulary)
    assert (again.labels, again.data, again.metrics, again.history) == (
        run.labels,
        run.data,
        run.metrics,
        run.history,
    )
    tokens = torch.tensor([run.vocabulary.encode(["the", "film", "was", "good"])])
    assert torch.equal(again.model(tokens), run.model(tokens))
    assert not again.model.training


def test_the_folder_holds_five_files_and_nothing_pickled(folder):
    names = {"config.json", "vocabulary.json", "weights.safetensors", "metrics.json", "history.jsonl"}
    assert {path.name for path in folder.iterdir()} == names
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


def test_loading_leaves_the_callers_generator_alone(folder):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_run(folder)
    assert torch.equal(torch.rand(3), expected)


def test_an_earlier_run_is_replaced_and_anything_else_is_not(run, folder, tmp_path):
    (folder / "history.jsonl").write_text("")
    save_run(run, folder)
    assert load_run(folder).history == run.history
    other = tmp_path / "letters"
    other.mkdir()
    (other / "dear.txt").write_text("keep me")
    for place in (other, other / "dear.txt"):
        with pytest.raises(FileError, match="exists and is no run folder"):
            save_run(run, place)
    assert (other / "dear.txt").read_text() == "keep me"
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_a_failure_half_way_leaves_the_earlier_run_and_no_fragments(run, folder, monkeypatch):
    def fail(_weights):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_folder, "to_bytes", fail)
    with pytest.raises(FileError, match=r"cannot be written: .*No space left on device"):
        save_run(run, folder)
    with pytest.raises(FileError):
        save_run(run, folder.parent / "new")
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    assert load_run(folder).history == run.history


def test_a_destination_below_a_file_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be written; expected .*file to be a folder"):
        check_destination(tmp_path / "file" / "run")
    check_destination(tmp_path / "a" / "b" / "run")
    assert not (tmp_path / "a").exists()


def test_a_missing_folder_and_a_folder_of_somebody_elses_are_told_apart(tmp_path):
    with pytest.raises(FileError, match=r"no run folder .*gone; expected one that `unrolled train` wrote"):
        load_run(tmp_path / "gone")
    with pytest.raises(DataError, match=r"is no run folder; expected a folder with config\.json in it"):
        load_run(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(DataError, match=r'config\.json is not ours; expected "format": "unrolled-run"'):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["vocabulary.json", "weights.safetensors", "metrics.json", "history.jsonl"])
def test_a_file_that_is_missing_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"the run folder lacks {name}"):
        load_run(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "vocabulary.json", "weights.safetensors", "metrics.json", "history.jsonl"]
)
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.6, 0.97])
def test_a_truncated_file_is_named(folder, name, kept):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    if name == "history.jsonl" and kept == 0.0:
        with pytest.raises(DataError, match=r"history\.jsonl: expected one line for each of the \d epochs, found 0"):
            load_run(folder)
        return
    with pytest.raises(DataError, match=name) as caught:
        load_run(folder)
    assert "\n" not in str(caught.value)


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version 2; expected 1"),
        ({"labels": ["a", "b", "c"]}, "labels has 3 entries; expected 2"),
        ({"model": {}}, "the setting '(vocabulary|classes)' is missing"),
        ({"model": None}, "expected model, training, labels and data"),
        ({"training": {"lr": -1}}, "lr is -1; expected greater than 0"),
    ],
)
def test_a_config_that_cannot_be_is_a_data_error(folder, changes, message):
    edit(folder / "config.json", **changes)
    with pytest.raises(DataError, match=message):
        load_run(folder)


def test_weights_that_do_not_fit_the_config_are_refused(folder):
    path = folder / "weights.safetensors"
    whole = load_file(path)
    broken = {
        "lacks head.bias": {name: value for name, value in whole.items() if name != "head.bias"},
        "unknown weights head.extra": {**whole, "head.extra": torch.zeros(1)},
        r"head\.bias has shape \(3,\); expected \(2,\)": {**whole, "head.bias": torch.zeros(3)},
        r"head\.bias holds NaN or infinity": {**whole, "head.bias": torch.tensor([0.0, float("nan")])},
    }
    for message, weights in broken.items():
        save_file(weights, path)
        with pytest.raises(DataError, match=message):
            load_run(folder)


def test_a_vocabulary_of_another_run_is_refused(folder, run):
    edit(folder / "vocabulary.json", words=[*run.vocabulary.words, "more"])
    size = len(run.vocabulary)
    with pytest.raises(DataError, match=f"vocabulary.json has {size + 1} entries; expected {size}"):
        load_run(folder)


def test_a_run_can_be_moved(folder, tmp_path):
    shutil.move(folder, tmp_path / "elsewhere")
    assert load_run(tmp_path / "elsewhere").data == "told"
