"""What a run learned from is found again, from whatever folder, and named where it has moved."""

from __future__ import annotations

import json
import os

import pytest

from toy_tasks import classify
from unrolled.errors import FileError
from unrolled.lab.data.checksums import file_checksums
from unrolled.lab.data.corpus import Brackets, Classification
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_config import load_config

SMALL = "dyck(3,2,seed=1,symbols=(300,100,100))"


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with a file of examples, in which we are."""
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "mine.tsv").write_text("".join(f"text {i} {i % 2}\t{i % 2}\n" for i in range(40)))
    monkeypatch.chdir(folder)
    return folder


def test_files_are_named_by_their_whole_paths_and_datasets_by_their_names(there, monkeypatch):
    typed = DataSettings(data=("mine.tsv",), test=("../there/mine.tsv",), limit=5)
    found = typed.with_absolute_paths()
    assert found == DataSettings(data=(str(there / "mine.tsv"),), test=(str(there / "mine.tsv"),), limit=5)
    monkeypatch.chdir(there.parent)
    assert len(found.reload_corpus(Classification).train) == 5
    with pytest.raises(FileError):
        typed.reload_corpus(Classification)
    for name in ("negation", SMALL, "told"):  # told is neither a dataset nor a file
        assert DataSettings(data=(name,)).with_absolute_paths().data == (name,)


def test_a_dataset_stays_one_beside_a_file_of_its_name(there):
    (there / "negation").write_text("")
    assert DataSettings(data=("negation",)).with_absolute_paths().data == ("negation",)


def test_a_link_keeps_its_own_name_which_says_the_format(there):
    (there / "mine.tsv").rename(there / "blob")
    (there / "mine.tsv").symlink_to("blob")
    assert DataSettings(data=("mine.tsv",)).with_absolute_paths().data == (str(there / "mine.tsv"),)


def test_a_file_that_has_moved_is_named_with_what_helps(there):
    choice = DataSettings(data=("mine.tsv",)).with_absolute_paths()
    (there / "mine.tsv").rename(there / "yours.tsv")
    said = r"mine\.tsv: no such file, but the run was trained on it; put it back.* evaluate RUN --data FILE"
    with pytest.raises(FileError, match=said):
        choice.reload_corpus(Classification)
    with pytest.raises(FileError, match=r"gone\.tsv: no such file, but the run was trained on it"):
        DataSettings(data=(str(there / "yours.tsv"),), dev=(str(there / "gone.tsv"),)).reload_corpus(Classification)
    with pytest.raises(FileError, match=r"mine\.tsv: cannot be read"):  # there is no run yet
        choice.load_corpus(Classification)


@pytest.fixture
def run(there, settings):
    """One that was stopped at its first step."""

    class Impatient(Callback):
        def on_step(self, _step):
            raise InterruptedError

    choice = DataSettings(data=("mine.tsv",))
    corpus = choice.load_corpus(Classification)
    chosen = settings.model_copy(update={"epochs": 1})
    with pytest.raises(InterruptedError):
        train(classify(corpus), corpus, chosen, there / "run", data=choice, callback=Impatient())
    return there / "run"


def test_a_run_is_gone_on_with_from_another_folder(run, there, monkeypatch):
    monkeypatch.chdir(there.parent)
    plan = load_config(run)
    assert plan.data == DataSettings(data=(str(there / "mine.tsv"),))
    done = resume(run, plan.data.reload_corpus(plan.task.kind, None, plan.settings.seed))
    assert (done.data, done.metrics["epochs"]) == (plan.data, 1)


def test_a_run_of_before_that_names_files_as_typed_is_read_where_it_was_begun(run, there, monkeypatch):
    path = run / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "data": {**config["data"], "data": ["mine.tsv"]}, "checksum": None}))
    assert len(load_config(run).data.reload_corpus(Classification).train) == 32
    monkeypatch.chdir(there.parent)
    with pytest.raises(FileError, match=r"^mine\.tsv: no such file.*change to the folder in which the run was"):
        load_config(run).data.reload_corpus(Classification)


def test_a_dataset_with_settings_is_made_again_and_its_title_names_a_folder():
    choice = DataSettings(data=(SMALL,))
    again = DataSettings(**json.loads(choice.model_dump_json()))
    assert again.reload_corpus(Brackets) == choice.load_corpus(Brackets)
    assert again.reload_corpus(Brackets) != DataSettings(data=(SMALL.replace("seed=1", "seed=2"),)).load_corpus(
        Brackets
    )
    assert DataSettings(data=("dyck(2,8,seed=3)",)).title == "dyck-2-8-seed-3"
    assert DataSettings(data=("uci-yelp",)).title == "uci-yelp"
    assert DataSettings(data=("of mine (1).tsv.gz",)).title == "of mine (1)"


def test_a_path_with_bytes_that_are_no_text_is_kept(there, settings):
    name = str(there / b"r\xfcn.tsv".decode(errors="surrogateescape"))
    (there / "mine.tsv").rename(name)
    data = DataSettings(data=(name,))
    corpus = data.load_corpus(Classification)
    chosen = settings.model_copy(update={"epochs": 1})
    train(classify(corpus), corpus, chosen, there / "run", data=data, files=file_checksums(data.files()))
    assert load_config(there / "run").data.data == (name,)
    assert resume(there / "run", corpus).metrics["epochs"] == 1


@pytest.mark.parametrize("role", ["data", "dev", "test"])
def test_a_pipe_is_refused_since_data_are_read_more_than_once(unrolled, there, role):
    os.mkfifo(there / "pipe.tsv")
    files = {"data": "mine.tsv", role: "pipe.tsv"}
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    unrolled("train", "classify", *words).assert_refused(2, "pipe.tsv is a pipe or a device")


def test_files_that_moved_together_are_found_in_the_folder_that_is_named(there, tmp_path):
    (there / "held").mkdir()
    (there / "held" / "mine.tsv").write_text("another text\t0\n")
    choice = DataSettings(data=("mine.tsv",), test=("held/mine.tsv",)).with_absolute_paths()
    before = choice.files()
    there.rename(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=r"or name the folder where it lies now: --data-dir FOLDER"):
        choice.reload_corpus(Classification)
    with pytest.raises(FileError, match=r"mine\.tsv: no such file"):  # not below this folder
        choice.reload_corpus(Classification, tmp_path)
    corpus = choice.reload_corpus(Classification, tmp_path / "elsewhere")
    assert [each.tokens for each in corpus.test] == [("another", "text")]
    now = choice.files(tmp_path / "elsewhere")
    assert list(now) == list(before)  # the checksums of a run know them by these names
    assert list(now.values()) == [tmp_path / "elsewhere" / "mine.tsv", tmp_path / "elsewhere" / "held" / "mine.tsv"]


def test_a_file_that_moved_alone_is_found_by_its_name_and_the_places_that_were_tried_are_named(there, tmp_path):
    (there / "x").mkdir()
    (there / "y").mkdir()
    (there / "mine.tsv").rename(there / "x" / "train.tsv")
    (there / "y" / "held.tsv").write_text("another text\t0\n")
    choice = DataSettings(data=("x/../x/train.tsv",), test=("y/held.tsv",))
    (tmp_path / "b").mkdir()
    (there / "x" / "train.tsv").rename(tmp_path / "b" / "train.tsv")
    assert choice.moved_to(tmp_path / "b").data == (str(tmp_path / "b" / "train.tsv"),)
    assert len(choice.reload_corpus(Classification, tmp_path / "b").test) == 1
    with pytest.raises(FileError) as refused:
        choice.reload_corpus(Classification, tmp_path)
    for place in (tmp_path / "x" / "train.tsv", tmp_path / "train.tsv"):
        assert f"{place} is no file either" in str(refused.value)


@pytest.mark.usefixtures("there")
def test_of_two_files_of_one_name_neither_is_found_by_it_alone(tmp_path):
    choice = DataSettings(data=("x/mine.tsv",), test=("y/mine.tsv",))
    (tmp_path / "mine.tsv").write_text("another text\t0\n")
    assert choice.moved_to(tmp_path) == choice
    with pytest.raises(FileError) as refused:
        choice.reload_corpus(Classification, tmp_path)
    assert f"{tmp_path / 'x' / 'mine.tsv'} is no file either" in str(refused.value)
    assert f"{tmp_path / 'mine.tsv'} is" not in str(refused.value)


@pytest.mark.usefixtures("there")
def test_files_without_a_folder_in_common_are_found_by_their_names(tmp_path, monkeypatch):
    def different_drives(_paths):
        raise ValueError

    monkeypatch.setattr(os.path, "commonpath", different_drives)
    (tmp_path / "gone.tsv").write_text("another text\t0\n")
    assert DataSettings(data=("gone.tsv",)).moved_to(tmp_path).data == (str(tmp_path / "gone.tsv"),)


@pytest.mark.usefixtures("there")
def test_a_file_that_is_where_it_was_is_read_there(tmp_path):
    choice = DataSettings(data=("mine.tsv",)).with_absolute_paths()
    (tmp_path / "mine.tsv").write_text("another text\t0\n")
    assert choice.moved_to(tmp_path) == choice
    dataset = DataSettings(data=("negation",))
    assert dataset.moved_to(tmp_path) is dataset
