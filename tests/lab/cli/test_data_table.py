"""``unrolled data table``: texts that are files of their own become a table that the other commands read."""

from __future__ import annotations

import csv
import os

import pytest

REVIEWS = {
    "pos": ["a fine film", 'a "good" one,\nof two lines', "good", "what a fine plot", "fine , fine", "a good plot"],
    "neg": ["a dull film", "a bad\r\none", "bad", "what a dull plot", "dull , dull", "a bad plot"],
}


@pytest.fixture
def reviews(tmp_path):
    for label, texts in REVIEWS.items():
        (tmp_path / "reviews" / label).mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / "reviews" / label / f"{number}.txt").write_bytes(f"{text}\n".encode())
    (tmp_path / "reviews" / ".hidden").mkdir()
    (tmp_path / "reviews" / ".hidden" / "x.txt").write_text("no review")
    (tmp_path / "reviews" / "pos" / ".DS_Store").write_bytes(b"\0\1")
    (tmp_path / "reviews" / "urls.txt").write_text("no review")
    return tmp_path / "reviews"


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_folder_of_a_text_is_its_label(unrolled, reviews, tmp_path):
    done = unrolled("data", "table", reviews, "--out", tmp_path / "r.csv")
    assert (done.status, done.out) == (0, f"12 texts: {tmp_path / 'r.csv'}; labels neg (6), pos (6)\n")
    rows = read(tmp_path / "r.csv")
    assert [(row["label"], row["text"]) for row in rows] == [
        (label, text.replace("\r", "")) for label in ("neg", "pos") for text in REVIEWS[label]
    ]
    assert [row["file"] for row in rows[:2]] == ["neg/0.txt", "neg/1.txt"]


def test_the_table_is_trained_on_and_predicted(unrolled, reviews, tmp_path):
    table = tmp_path / "r.csv"
    assert unrolled("data", "table", reviews, "--out", table).status == 0
    trained = unrolled("train", "classify", "--data", table, "--epochs", 1, "--hidden", 4, "--out", tmp_path / "run")
    assert trained.status == 0, trained.err
    said = unrolled("predict", tmp_path / "run", table)
    assert len(list(csv.reader(said.out.splitlines()))) >= 13
    assert [row["text"] for row in csv.DictReader(said.out.splitlines(keepends=True))] == [
        row["text"] for row in read(table)
    ]


def test_texts_of_one_folder_have_no_label(unrolled, reviews, tmp_path):
    done = unrolled("data", "table", reviews / "pos", "--out", tmp_path / "p.csv")
    assert done.out == f"6 texts: {tmp_path / 'p.csv'}\n"
    assert [row["text"] for row in read(tmp_path / "p.csv")] == REVIEWS["pos"]
    assert "label" not in read(tmp_path / "p.csv")[0]


def test_what_is_no_text_is_named(unrolled, reviews, tmp_path):
    (reviews / "pos" / "7.txt").write_bytes("caf\xe9".encode("latin-1"))
    refused = unrolled("data", "table", reviews, "--out", tmp_path / "r.csv")
    refused.assert_refused(65, "7.txt:1: expected UTF-8 text")
    (reviews / "pos" / "7.txt").write_bytes(b"PK\x03\x04 more")
    unrolled("data", "table", reviews, "--out", tmp_path / "r.csv").assert_refused(65, "an archive")
    assert not (tmp_path / "r.csv").exists()


def test_what_cannot_be_made_is_refused(unrolled, reviews, tmp_path):
    unrolled("data", "table", tmp_path / "gone", "--out", tmp_path / "r.csv").assert_refused(74, "no folder")
    (tmp_path / "empty").mkdir()
    unrolled("data", "table", tmp_path / "empty", "--out", tmp_path / "r.csv").assert_refused(65, "no file in it")
    (tmp_path / "r.csv").write_text("mine")
    unrolled("data", "table", reviews, "--out", tmp_path / "r.csv").assert_refused(2, "already exists")
    assert (tmp_path / "r.csv").read_text() == "mine"
    assert unrolled("data", "table", reviews, "--out", tmp_path / "r.csv", "--force").status == 0


def test_files_at_other_depths_and_empty_ones_are_left_out_and_named(unrolled, reviews, tmp_path):
    (reviews / "pos" / "more").mkdir()
    (reviews / "pos" / "more" / "x.txt").write_text("a deep one")
    (reviews / "neg" / "blank.txt").write_text(" \n")
    done = unrolled("data", "table", reviews, "--out", tmp_path / "r.csv")
    assert done.out.startswith("12 texts: ")
    assert done.err.splitlines() == [
        "left out, empty: 1 file (neg/blank.txt)",
        "left out, not in the folder of a label: 2 files (pos/more/x.txt, urls.txt)",
    ]
    assert all(row["text"] for row in read(tmp_path / "r.csv"))
    below = unrolled("data", "table", reviews / "pos", "--out", tmp_path / "p.csv")
    assert "labels more (1)" in below.out
    assert below.err.startswith("left out, not in the folder of a label: 6 files (0.txt, 1.txt, ")
    (reviews / "flat" / "sub").mkdir(parents=True)
    (reviews / "flat" / "a.txt").write_text("a text")
    (reviews / "new").mkdir()
    for place in (reviews / "new" / "t.csv", reviews / "pos" / "t.csv"):
        refused = unrolled("data", "table", reviews, "--out", place)
        refused.assert_refused(2, "t.csv would lie among the texts")
    beside = unrolled("data", "table", reviews, "--out", reviews / "t.csv")  # the control
    assert beside.out.startswith("13 texts: ")
    (reviews / "t.csv").unlink()
    whole = unrolled("data", "table", reviews / "neg", "--out", tmp_path / "n.csv")  # the control: nothing but empty
    assert whole.err == "left out, empty: 1 file (blank.txt)\n"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.txt").write_text("\n")
    refused = unrolled("data", "table", tmp_path / "empty", "--out", tmp_path / "e.csv")
    refused.assert_refused(65, "every file in it is empty")


def test_a_table_is_written_beside_the_texts_and_under_its_own_suffix(unrolled, reviews, tmp_path):
    for folder, out in ((reviews / "pos", reviews / "pos" / "p.csv"), (reviews, reviews / "neg" / "p.csv")):
        refused = unrolled("data", "table", folder, "--out", out)
        refused.assert_refused(2, "p.csv would lie among the texts, and be read as one the next time")
        assert not out.exists()
    words = ("data", "table", reviews, "--force", "--out")
    unrolled(*words, reviews / "pos" / "0.txt").assert_refused(2, "would hold the format of .csv, not of .txt")
    unrolled(*words, tmp_path / "r.txt").assert_refused(2, "would hold the format of .csv, not of .txt")
    (reviews / "urls.txt").unlink()
    for _ in range(2):  # the control: beside the folders it is no text, and not named as one
        done = unrolled(*words, reviews / "r.csv")
        assert (done.out.startswith("12 texts"), done.err) == (True, "")


def test_a_name_that_is_not_utf_8_is_escaped(unrolled, reviews, tmp_path):
    try:
        (tmp_path / os.fsdecode(b"reviews/neg/caf\xe9.txt")).write_text("fine")
    except OSError:
        pytest.skip("this file system has no such names")
    assert unrolled("data", "table", reviews, "--out", tmp_path / "r.csv").status == 0
    assert [row["file"] for row in read(tmp_path / "r.csv") if row["text"] == "fine"] == ["neg/caf\\udce9.txt"]


def test_a_folder_in_the_place_of_a_file_names_the_command(unrolled, reviews, tmp_path):
    spaced = reviews.rename(tmp_path / "my reviews")
    said = unrolled("train", "classify", "--data", spaced)
    said.assert_refused(74, f"`unrolled data table '{spaced}' --out texts.csv` makes of texts in files of their own")


def test_ratings_that_are_trained_as_classes_name_the_other_task(unrolled, tmp_path):
    rows = "".join(f"film number {number} is good,{number}.5\n" for number in range(30))
    (tmp_path / "rated.csv").write_text("text,label\n" + rows)
    unrolled("train", "classify", "--data", tmp_path / "rated.csv").assert_refused(
        65, "to predict numbers, train regress"
    )
    (tmp_path / "names.csv").write_text("text,label\n" + rows.replace(".5\n", "th\n"))
    said = unrolled("train", "classify", "--data", tmp_path / "names.csv")
    assert "regress" not in said.err
