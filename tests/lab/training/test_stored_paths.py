"""A run folder names no home of its user, and finds its files where it has moved with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from unrolled.lab.training.run_folder import load_run

WORDS = ("--epochs", "1", "--hidden", "4", "--embedding", "4")


def write_reviews(path: Path) -> None:
    rows = (f"film {n} is {('good', 'bad')[n % 2]},{('pos', 'neg')[n % 2]}\n" for n in range(60))
    path.write_text("text,label\n" + "".join(rows))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home of a user whose name must not be seen."""
    folder = tmp_path / "home" / "alice"
    (folder / "proj" / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder / "proj")
    write_reviews(folder / "proj" / "data" / "reviews.csv")
    vectors = "".join(f"{word} 1 2 3 4\n" for word in ("film", "good", "bad"))
    (folder / "vectors.txt").write_text(vectors)
    return folder


@pytest.fixture
def trained(home, unrolled):
    words = ("--data", "data/reviews.csv", "--vectors", home / "vectors.txt", "--out", "runs/x", *WORDS)
    done = unrolled("train", "classify", *words)
    assert done.status == 0, done.err
    return home / "proj" / "runs" / "x"


def test_no_file_of_a_run_or_of_its_reports_has_the_name_of_the_user(home, trained, unrolled):
    reports = ("--html", "errors.html", "--predictions", "new.csv")
    assert unrolled("evaluate", "runs/x", *reports).status == 0
    written = [path for path in trained.rglob("*") if path.is_file()]
    assert {"README.md", "config.json", "data.json", "weights.safetensors"} <= {path.name for path in written}
    for path in (*written, Path("errors.html"), Path("new.csv")):
        assert b"alice" not in path.read_bytes(), path
    assert "--data reviews.csv --hidden 4 --embedding 4 --epochs 1 --vectors vectors.txt" in (
        (trained / "README.md").read_text()
    )
    # the control: what is read is the whole path again
    run = load_run(trained)
    assert run.data.data == (str(home / "proj" / "data" / "reviews.csv"),)
    assert run.settings.vectors == home / "vectors.txt"


def test_a_project_that_moved_as_a_whole_is_evaluated_without_a_word(home, trained, unrolled, tmp_path, monkeypatch):
    before = unrolled("evaluate", trained)
    other = tmp_path / "other" / "bob"
    other.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (home / "proj").rename(other / "project")
    moved = other / "project" / "runs" / "x"
    for user in (other, home):
        monkeypatch.setenv("HOME", str(user))
        after = unrolled("evaluate", moved)
        assert (after.status, after.err) == (0, before.err)
        assert after.out.replace(str(moved), "RUN") == before.out.replace(str(trained), "RUN")
    # the control: the run alone, whose files it cannot see from there
    shutil.copytree(moved, tmp_path / "x")
    refused = unrolled("evaluate", tmp_path / "x")
    assert refused.status == 74
    assert "reviews.csv: no such file, but the run was trained on it" in refused.err
    assert "--data-dir FOLDER" in refused.err


def test_a_user_whose_home_is_the_root_finds_what_moved_with_the_run(home, trained, unrolled, tmp_path, monkeypatch):
    before = unrolled("evaluate", trained)
    (home / "proj").rename(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/")  # as in a container whose user has none
    after = unrolled("evaluate", tmp_path / "project" / "runs" / "x")
    assert (after.status, after.err) == (0, before.err)
    # a path below the root is no path below a home
    done = unrolled("train", "classify", "--data", tmp_path / "project" / "data" / "reviews.csv", "--out", "y", *WORDS)
    assert done.status == 0, done.err
    assert '"~' not in Path("y/config.json").read_text()


def test_a_run_that_moved_alone_reads_its_files_where_they_are(trained, unrolled, tmp_path):
    shutil.move(trained, tmp_path / "x")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "reviews.csv").write_text("text,label\nanother file,pos\n")
    done = unrolled("evaluate", tmp_path / "x")
    assert (done.status, done.err.count("changed")) == (0, 0)


def test_other_files_beside_a_moved_run_are_noticed(home, trained, unrolled, tmp_path):
    shutil.move(trained, tmp_path / "a" / "b" / "x")
    (home / "proj" / "data" / "reviews.csv").unlink()
    (tmp_path / "a" / "data").mkdir()
    write_reviews(tmp_path / "a" / "data" / "reviews.csv")
    with (tmp_path / "a" / "data" / "reviews.csv").open("a") as file:
        file.write("one more,pos\n")
    assert "the data have changed since the training" in unrolled("evaluate", tmp_path / "a" / "b" / "x").err


def test_a_run_of_before_names_whole_paths_and_is_opened(trained, unrolled):
    """Such a run has no folder in its configuration; one of version 2 needs no checksums either."""
    (trained / "data.json").unlink()
    config = json.loads((trained / "config.json").read_text())
    del config["folder"], config["checksum"]
    config["version"], config["data"]["data"] = 2, [str(Path("data/reviews.csv").resolve())]
    (trained / "config.json").write_text(json.dumps(config))
    done = unrolled("evaluate", trained)
    assert done.status == 0, done.err


def test_a_file_outside_the_home_keeps_its_path(home, unrolled, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    done = unrolled("train", "classify", "--data", tmp_path / "reviews.csv", "--out", "runs/y", *WORDS)
    assert done.status == 0, done.err
    config = json.loads((home / "proj" / "runs" / "y" / "config.json").read_text())
    assert config["data"]["data"] == [str(tmp_path / "reviews.csv")]
    assert config["folder"] == "~/proj/runs/y"
