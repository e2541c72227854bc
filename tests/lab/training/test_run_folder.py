from __future__ import annotations

import json
import random
import shutil
from hashlib import sha256

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

from toy_tasks import DATA
from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_config import load_config
from unrolled.lab.training.run_creation import check_destination
from unrolled.lab.training.run_files import weights_content
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.training_state import TrainingState

FILES = {
    "README.md",
    "checkpoints",
    "config.json",
    "data.json",
    "log.csv",
    "log.jsonl",
    "metrics.json",
    "task.json",
    "times.jsonl",
    "weights.safetensors",
}


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained.folder, tmp_path / "deep" / "run")


def test_a_run_comes_back_as_it_was(trained, folder):
    again = load_run(folder)
    assert (again.task.to_record(), again.task.architecture) == (trained.task.to_record(), trained.task.architecture)
    assert (again.data, again.settings, again.metrics, again.history) == (
        trained.data,
        trained.settings,
        trained.metrics,
        trained.history,
    )
    tokens = torch.tensor([again.task.vocabulary.encode(["the", "film", "was", "good"])])
    assert torch.equal(again.model(tokens), trained.model(tokens))
    assert not again.model.training
    assert again.folder == folder


def test_the_folder_holds_text_and_tensors_and_nothing_pickled(folder):
    assert {path.name for path in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".md", ".json", ".csv", ".jsonl", ".safetensors"}
    assert len({path.stat().st_mode for path in files}) == 1
    for path in files:
        if path.suffix == ".safetensors":
            load_file(path)
        else:
            path.read_text(encoding="utf-8")


def test_loading_leaves_the_callers_generator_alone(folder):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_run(folder)
    assert torch.equal(torch.rand(3), expected)


def test_an_earlier_run_is_replaced_on_request_and_anything_else_never(task, corpus, settings, folder, tmp_path):
    with pytest.raises(UsageError, match=r"run already exists: choose another --out, or pass --force"):
        train(task, corpus, settings, folder, data=DATA)
    short = settings.model_copy(update={"epochs": 1})
    train(task, corpus, short, folder, data=DATA, force=True)
    assert load_run(folder).metrics["epochs"] == 1
    other = tmp_path / "letters"
    other.mkdir()
    (other / "dear.txt").write_text("keep me")
    for place in (other, other / "dear.txt"):
        with pytest.raises(FileError, match="already exists and is not a run folder"):
            train(task, corpus, short, place, data=DATA, force=True)
    assert (other / "dear.txt").read_text() == "keep me"
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_a_training_that_cannot_begin_leaves_the_earlier_run(task, corpus, settings, folder):
    with pytest.raises(UsageError):
        train(task, corpus, settings.model_copy(update={"precision": "fp16"}), folder, data=DATA, force=True)
    assert load_run(folder).metrics["epochs"] == settings.epochs


def test_what_a_killed_training_left_beside_its_place_is_cleared(task, corpus, settings, tmp_path):
    left = tmp_path / ".run.partial"
    left.mkdir()
    (left / "config.json").write_text("{")
    train(task, corpus, settings.model_copy(update={"epochs": 1}), tmp_path / "run", data=DATA)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_destination_below_a_file_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be written: .*file is not a folder"):
        check_destination(tmp_path / "file" / "run")
    check_destination(tmp_path / "a" / "b" / "run")
    assert not (tmp_path / "a").exists()


def test_a_missing_folder_and_a_folder_of_somebody_elses_are_told_apart(tmp_path):
    with pytest.raises(FileError, match=r"no run folder .*gone; give a folder that `unrolled train` wrote"):
        load_run(tmp_path / "gone")
    with pytest.raises(DataError, match=r"is not a run folder: it has no config\.json"):
        load_run(tmp_path)
    (tmp_path / "model.pt").touch()
    with pytest.raises(
        DataError, match=r"model\.pt is a file, not a run folder.*explain --weights.*unrolled\.explain\("
    ):
        load_run(tmp_path / "model.pt")
    (tmp_path / "config.json").write_text('{"model": "bert"}')
    with pytest.raises(DataError, match=r'config\.json is not .* a run: "format" is not "unrolled-run"'):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["task.json", "weights.safetensors", "log.jsonl"])
def test_a_file_that_is_missing_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"the run folder lacks {name}"):
        load_run(folder)


def test_without_metrics_and_checkpoints_there_is_no_run(folder):
    (folder / "metrics.json").unlink()
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(DataError, match=r"lacks both metrics\.json and checkpoints"):
        load_run(folder)


@pytest.mark.parametrize("name", ["config.json", "task.json", "weights.safetensors", "metrics.json", "log.jsonl"])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.6, 0.97])
def test_a_truncated_file_is_named(folder, name, kept):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(DataError, match=name) as caught:
        load_run(folder)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_told(folder):
    (folder / "task.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError, match=r"task\.json: byte 7 is not valid UTF-8"):
        load_run(folder)
    (folder / "task.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"task\.json: not valid JSON"):
        load_run(folder)


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), "checksum": None, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 1}, "version 1; this release reads versions 2 and 3"),
        ({"task": "clasify"}, "unknown task 'clasify'; did you mean 'classify'"),
        ({"task": "os.system"}, "unknown task 'os.system'"),
        ({"architecture": {"encoder": "gruu"}}, "unknown encoder 'gruu'; did you mean 'gru'"),
        ({"architecture": None}, "task, data, examples, architecture or training is missing or wrong"),
        ({"training": {"lr": -1}}, "lr is -1; expected greater than 0"),
        ({"data": {"data": []}}, "data is"),
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
        "lacks weights of this model: head.bias": {name: value for name, value in whole.items() if name != "head.bias"},
        "has weights that this model lacks: head.extra": {**whole, "head.extra": torch.zeros(1)},
        r"head\.bias has shape \(3,\); expected \(2,\)": {**whole, "head.bias": torch.zeros(3)},
        r"head\.bias contains NaN or infinity": {**whole, "head.bias": torch.tensor([0.0, float("nan")])},
    }
    for message, weights in broken.items():
        path.write_bytes(weights_content(weights))
        with pytest.raises(DataError, match=message):
            load_run(folder)


def test_a_vocabulary_of_another_run_is_refused(folder, trained):
    record = trained.task.vocabulary.to_record()
    edit(folder / "task.json", vocabulary={**record, "words": [*record["words"], "more"]})
    with pytest.raises(DataError, match=r"embedding\.weight has shape .*; expected"):
        load_run(folder)


def test_the_plan_says_what_was_to_be_learned_how_and_from_what(folder, settings):
    plan = load_config(folder)
    assert (plan.task.name, plan.settings, plan.data) == ("classify", settings, DATA)
    assert plan.sizes == {"train": 120, "dev": 20, "test": 40}
    versions = json.loads((folder / "config.json").read_text())["versions"]
    assert versions["torch"] == torch.__version__.split("+")[0] or versions["torch"] == torch.__version__
    assert {"unrolled", "python", "numpy", "safetensors"} < versions.keys()


def test_weights_without_their_checksum_are_refused(folder):
    path = folder / "weights.safetensors"
    save_file(load_file(path), path)
    with pytest.raises(DataError, match="it lacks its checksum"):
        load_run(folder)


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "task.json", "metrics.json"])
def test_two_flipped_bits_anywhere_do_not_load(folder, name):
    path = folder / name
    whole, draw = path.read_bytes(), random.Random(name)
    for _ in range(25):
        content = bytearray(whole)
        for place in draw.sample(range(len(whole)), 2):
            content[place] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        with pytest.raises(UnrolledError) as caught:
            load_run(folder)
        assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    load_run(folder)


def test_words_that_change_places_are_noticed(folder):
    """Every size fits; only the checksum tells."""
    path = folder / "task.json"
    record = json.loads(path.read_text())
    record["vocabulary"]["words"].reverse()
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"task\.json has changed since it was written.*set .checksum. to null"):
        load_run(folder)


def test_a_log_of_brackets_is_refused_in_one_line(folder):
    (folder / "log.jsonl").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"log\.jsonl:1: not a line of a log") as caught:
        load_run(folder)
    assert "\n" not in str(caught.value)


def renamed(path, tensors, record):
    """Write a checkpoint under the name that its content asks for, as somebody would who attacks on purpose."""
    content = save(tensors, {"training": record})
    path.unlink()
    path.with_name(f"{path.name[:14]}-{sha256(content).hexdigest()[:16]}.safetensors").write_bytes(content)


@pytest.mark.parametrize(
    "changes",
    [
        {"best": "../../elsewhere"},
        {"best": 3},
        {"step": "many"},
        {"epoch": -1},
        {"history": [{}]},
        {"window": None},
        {"logs": [1]},
        {"evaluation": "x"},
        {"judging": "x"},
        {"judging": 1.0, "evaluation": 1.0},
        {"unheard": 1},
        "[" * 100_000,
        "7",
    ],
)
def test_a_checkpoint_that_no_training_wrote_is_refused_in_one_line(folder, corpus, changes):
    (folder / "metrics.json").unlink()
    (path,) = (folder / "checkpoints").glob("step-*")
    with safe_open(path, framework="pt") as file:
        record = json.loads(file.metadata()["training"])
    text = changes if isinstance(changes, str) else json.dumps({**record, "best": None, "history": [], **changes})
    renamed(path, load_file(path), text)
    with pytest.raises(DataError) as caught:
        resume(folder, corpus)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_that_has_the_former_name_of_the_seconds_of_evaluation_is_read():
    record = TrainingState(step=3, evaluation=1.5).to_record()
    former = {"judging" if name == "evaluation" else name: value for name, value in record.items()}
    assert (
        TrainingState.from_record(former) == TrainingState.from_record(record) == TrainingState(step=3, evaluation=1.5)
    )


@pytest.mark.parametrize("name", ["order", "rank.0.generator.torch", "rank.0.generator.numpy"])
@pytest.mark.parametrize("value", [None, torch.zeros(3), torch.zeros(0, dtype=torch.uint8)])
def test_a_checkpoint_whose_tensors_do_not_fit_is_refused_in_one_line(folder, corpus, name, value):
    (folder / "metrics.json").unlink()
    (path,) = (folder / "checkpoints").glob("step-*")
    with safe_open(path, framework="pt") as file:
        record = json.loads(file.metadata()["training"])
    record |= {"best": None, "history": []}
    tensors = load_file(path)
    if name not in tensors:
        pytest.skip(f"this optimiser has no {name}")
    tensors.pop(name)
    renamed(path, tensors if value is None else {**tensors, name: value}, json.dumps(record))
    with pytest.raises(DataError, match="it does not fit this run") as caught:
        resume(folder, corpus)
    assert "\n" not in str(caught.value)
