"""``unrolled data``: what there is, what is in it, whether it is right, and where to get it."""

from __future__ import annotations

import os

import pytest

from unrolled.lab.data.collection.manifest import read_manifest
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.datasets.dyck import DyckStrings


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("UNROLLED_DATA", raising=False)


def write_uci(folder):
    (folder / "uci_sentiment").mkdir()
    text = "".join(f"sentence {number}\t{number % 2}\n" for number in range(1000))
    (folder / "uci_sentiment" / "yelp_labelled.txt").write_text(text)


def test_the_list_is_a_line_a_dataset_and_says_what_is_at_hand(unrolled, tmp_path):
    write_uci(tmp_path)
    shown = unrolled("data", "list", "--data-dir", tmp_path)
    assert (shown.status, shown.err) == (0, "")
    rows = {line.split("\t")[0]: line.split("\t") for line in shown.out.splitlines()}
    assert tuple(rows) == DATASETS.names()
    assert {len(row) for row in rows.values()} == {5}
    assert rows["uci-yelp"][1] == "classification"
    at_hand = {name for name, row in rows.items() if row[-1] != "no"}
    generated = {name for name in rows if not read_manifest().source(name).files}
    assert at_hand == {"uci-yelp"} | generated
    assert {"dyck", "negation", "python"} <= generated


def test_without_a_folder_the_list_says_so(unrolled):
    shown = unrolled("data", "list")
    assert shown.status == 0
    assert "UNROLLED_DATA" in shown.err
    assert "negation\tclassification" in shown.out


def test_a_data_folder_that_does_not_exist_is_told(unrolled, tmp_path):
    for words in (("list",), ("describe", "sst2")):
        shown = unrolled("data", *words, "--data-dir", tmp_path / "gone")
        assert shown.err == f"no folder {tmp_path / 'gone'}; correct --data-dir, or the variable UNROLLED_DATA\n"
        assert unrolled("data", *words, "--data-dir", tmp_path).err == ""  # the control


@pytest.mark.parametrize("width", [60, 80, 200])
def test_in_a_terminal_no_word_is_cut(unrolled, monkeypatch, width):
    plain = unrolled("data", "list").out.splitlines()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = unrolled("data", "list").out
    assert all(len(line) <= width for line in shown.splitlines())
    words = " ".join(shown.split())
    for name, kind, description, licence, available in (line.split("\t") for line in plain):
        assert f"{name}: {kind}, available: {available} {description} licence: {licence}" in words


def test_a_description_has_sizes_terms_and_an_example(unrolled, tmp_path):
    write_uci(tmp_path)
    shown = unrolled("data", "describe", "uci-yelp", "--data-dir", tmp_path)
    assert shown.status == 0
    for words in ("CC BY 4.0", "Kotzias", "train     800 texts; ", "example   sentence"):
        assert words in shown.out


def test_the_description_of_brackets_says_how_to_have_others(unrolled):
    assert "dyck(k,m)" in unrolled("data", "describe", "dyck").out


def test_brackets_with_settings_are_described_as_they_are_trained_on(unrolled):
    shown = unrolled("data", "describe", "dyck(3,2,symbols=(600,200,200))").out
    assert "dyck(3,2,symbols=(600,200,200)): dyck, with settings" in shown
    corpus = DyckStrings(3, 2, symbols=(600, 200, 200)).read()
    assert f"train     {len(corpus.train)} strings; " in shown
    assert f"train     {len(corpus.train)} strings; " not in unrolled("data", "describe", "dyck").out


def test_a_description_of_what_is_not_at_hand_says_how_to_get_it(unrolled, tmp_path):
    assert "not available: unrolled data fetch wikitext2" in unrolled("data", "describe", "wikitext2").out
    shown = unrolled("data", "describe", "ptb", "--data-dir", tmp_path)
    assert "ask       https://catalog.ldc.upenn.edu" in shown.out
    assert "not available: put its files into the folder" in shown.out


def test_what_is_right_is_said_and_what_is_wrong_leaves_with_65(unrolled, tmp_path):
    shown = unrolled("data", "check", "negation")
    assert (shown.status, shown.out) == (0, "negation: 4,120 / 200 / 200 in train / dev / test, as expected\n")
    write_uci(tmp_path)  # of the right size, but not the dataset
    shown = unrolled("data", "check", "uci-yelp", "negation", "--data-dir", tmp_path)
    assert shown.status == 65
    assert "negation: 4,120" in shown.out  # the others are still looked at
    assert "yelp_labelled.txt: expected 61,320 bytes" in shown.err


def test_a_check_of_everything_looks_at_what_is_at_hand(unrolled, tmp_path):
    shown = unrolled("data", "check", "--data-dir", tmp_path)
    assert shown.status == 0
    generated = [name for name in DATASETS.names() if not read_manifest().source(name).files]
    assert [line.split(":")[0] for line in shown.out.splitlines()] == generated
    assert "no folder" not in shown.err


def test_a_check_of_everything_says_where_nothing_is_at_hand(unrolled, tmp_path, monkeypatch):
    monkeypatch.setattr("unrolled.lab.data.collection.manifest.check_dataset", lambda *_: ())
    (tmp_path / "file").write_text("")
    assert "no folder" in unrolled("data", "check", "--data-dir", tmp_path / "file").err


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (("describe", "ptbs"), 2, "did you mean 'ptb'"),
        (("describe", "ptb(3)"), 2, "ptb has no settings; pass its name alone"),
        (("check", "ptbs"), 2, "did you mean 'ptb'"),
        (("check", "ptb"), 2, "no data folder; pass --data-dir"),
        (("check", "ptb", "--data-dir", os.devnull), 74, "no ptb/ptb.train.txt in"),
        (("fetch", "ptb"), 2, "no data folder; pass --data-dir"),
        (
            ("fetch", "ptb", "--data-dir", os.devnull),
            2,
            "ptb cannot be downloaded, because its licence does not permit it (LDC text",
        ),
        (("fetch", "nothing", "--data-dir", os.devnull), 2, "unknown dataset 'nothing'"),
    ],
)
def test_what_cannot_be_is_one_line(unrolled, words, status, expected):
    unrolled("data", *words).assert_refused(status, expected)


def test_what_is_generated_needs_no_fetching(unrolled, tmp_path):
    shown = unrolled("data", "fetch", "dyck", "--data-dir", tmp_path)
    assert (shown.status, shown.out) == (0, "dyck: generated, there is nothing to download\n")
    assert list(tmp_path.iterdir()) == []
