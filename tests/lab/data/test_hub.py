"""Datasets of Hugging Face's library, saved to disk by the library itself; no network."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest

from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.data.corpus import Classification, Regression, Tagging
from unrolled.lab.data.load import load_dataset
from unrolled.lab.data.reading import Reading

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")

TEXTS = [f"a {word} film number {k}" for k in range(20) for word in ("good", "bad")]
LABELS = [1, 0] * 20


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def table(texts=TEXTS, labels=LABELS, text="review", label="mood", names=("sad", "glad"), **more):
    features = datasets.Features(
        {
            text: datasets.Value("string"),
            label: datasets.ClassLabel(names=list(names)) if names else datasets.Value("float32"),
            **{key: datasets.Value("int64") for key in more},
        }
    )
    return datasets.Dataset.from_dict({text: texts, label: labels, **more}, features=features)


def splits(**tables):
    return datasets.DatasetDict(tables)


def saved(folder, data):
    data.save_to_disk(folder)
    return f"hf:{folder}"


def test_a_folder_is_read_with_the_names_of_its_classes(tmp_path):
    data = splits(train=table(), validation=table(TEXTS[:4], LABELS[:4]), test=table(TEXTS[4:8], LABELS[4:8]))
    corpus = load_dataset(saved(tmp_path / "reviews", data), Classification)
    assert corpus.labels == ("glad", "sad")
    assert [len(each) for each in (corpus.train, corpus.dev, corpus.test)] == [40, 4, 4]
    assert corpus.train[0].text == TEXTS[0]
    assert corpus.labels[corpus.train[0].label] == "glad"
    assert len(corpus.notes) == len(set(corpus.notes)) == 3  # the columns of each split, once
    objects = load_dataset(data, Classification)
    assert (objects.train, objects.dev, objects.test) == (corpus.train, corpus.dev, corpus.test)


def test_without_other_splits_a_tenth_is_kept():
    for data in (table(), splits(train=table())):
        corpus = load_dataset(data, Classification)
        assert [len(each) for each in (corpus.train, corpus.dev, corpus.test)] == [32, 4, 4]


def test_a_test_split_without_labels_is_left_out():
    secret = table(TEXTS[:6], [-1] * 6)
    corpus = load_dataset(splits(train=table(), test=secret), Classification)
    assert any("no labels" in note for note in corpus.notes)
    assert len(corpus.test) == 4


def test_columns_are_chosen_by_the_rules_of_files():
    other = table(number=[7] * 40)
    assert load_dataset(other, Classification).labels == ("glad", "sad")
    with pytest.raises(UnrolledError, match="nothing"):
        load_dataset(other, Classification, reading=Reading(label_column="nothing"))
    twice = datasets.Dataset.from_dict({"one": TEXTS, "two": TEXTS[::-1], "three": LABELS})
    with pytest.raises(DataError, match="cannot tell which column"):
        load_dataset(twice, Classification)
    chosen = load_dataset(twice, Classification, reading=Reading(text_column="two", label_column="three"))
    assert TEXTS[-1] in {example.text for example in chosen.train}


def test_ratings_are_numbers():
    corpus = load_dataset(table(labels=[k / 7 for k in range(40)], names=()), Regression)
    assert {round(example.rating, 4) for example in corpus.train} <= {round(k / 7, 4) for k in range(40)}


def test_what_cannot_be_read_is_one_line(tmp_path):
    for data, kind, error, said in (
        ("hf:", Classification, UsageError, "hf:NAME"),
        ("hf:nobody/nothing", Classification, FileError, "unrolled data fetch hf:nobody/nothing"),
        (f"hf:{tmp_path}", Classification, FileError, "check the folder"),
        (splits(test=table()), Classification, DataError, "train"),
        (table(), Tagging, UsageError, "labelled texts"),
    ):
        with pytest.raises(error, match=said) as found:
            load_dataset(data, kind)
        assert "\n" not in str(found.value)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "dataset_dict.json").write_text("{")
    with pytest.raises(FileError, match="cannot be read"):
        load_dataset(f"hf:{tmp_path / 'broken'}", Classification)
    for more in ({"test": [tmp_path / "x.csv"]}, {"format": "csv"}):
        with pytest.raises(UsageError):
            load_dataset(table(), Classification, **more)


def test_the_command_line_trains_on_a_folder(unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved("reviews", splits(train=table(), test=table(TEXTS[:8], LABELS[:8])))
    words = ("--encoder", "gru", "--hidden", 4, "--embedding", 4, "--epochs", 1, "--device", "cpu")
    done = unrolled("train", "classify", "--data", "hf:reviews", *words)
    assert done.status == 0, done.err
    again = unrolled("evaluate", "runs/reviews-gru")
    assert again.status == 0, again.err
    assert "(8)" in again.out
    monkeypatch.chdir("/")
    elsewhere = unrolled("evaluate", tmp_path / "runs" / "reviews-gru")
    assert elsewhere.out == again.out, elsewhere.err
    unrolled("train", "classify", "--data", "hf:gone/x.v1", *words).assert_refused(74, "unrolled data fetch")


def test_columns_of_a_dataset_are_taken_where_lists_are():
    from unrolled.sklearn import RecurrentClassifier

    data = table()
    estimator = RecurrentClassifier(hidden=4, embedding=4, epochs=2, random_state=0)
    found = estimator.fit(data["review"], data["mood"]).predict(data["review"])
    lists = estimator.fit(list(TEXTS), LABELS).predict(list(TEXTS))
    np.testing.assert_array_equal(found, lists)


@pytest.fixture
def run_of_reviews(unrolled, tmp_path, monkeypatch):
    """The folder of a small run, whose classes are glad and sad."""
    monkeypatch.chdir(tmp_path)
    saved("reviews", splits(train=table(), test=table(TEXTS[:8], LABELS[:8])))
    words = ("--encoder", "gru", "--hidden", 4, "--embedding", 4, "--epochs", 1, "--device", "cpu", "--out", "run")
    assert unrolled("train", "classify", "--data", "hf:reviews", *words).status == 0
    return "run"


def test_a_run_is_evaluated_on_another_dataset(unrolled, run_of_reviews):
    fresh = ["a poor film", "a fine play", "dull", "superb"]
    saved("other", splits(test=table(fresh, [0, 1, 0, 1], text="words", label="verdict"), validation=table()))
    done = unrolled("evaluate", run_of_reviews, "--data", "hf:other", "--predictions", "found.csv")
    assert done.status == 0, done.err
    assert "hf:other (4): accuracy" in done.out
    assert "hf:other[test]: texts from 'words', labels from 'verdict'" in done.err
    assert [line.split(",")[1] for line in Path("found.csv").read_text().splitlines()[1:]] == fresh
    dev = unrolled("evaluate", run_of_reviews, "--data", "hf:other", "--split", "dev")
    assert "hf:other (40)" in dev.out
    assert "ones that the model was trained on" in dev.err
    unrolled("evaluate", run_of_reviews, "--data", "hf:other", "--split", "train").assert_refused(65, "--split")


def test_the_only_split_stands_for_any_and_is_named(unrolled, run_of_reviews):
    saved("plain", table(TEXTS[:6], LABELS[:6]))
    done = unrolled("evaluate", run_of_reviews, "--data", "hf:plain")
    assert "hf:plain (6)" in done.out
    assert "hf:plain[train]: 6 examples" in done.err


def test_what_cannot_be_evaluated_is_one_line(unrolled, run_of_reviews):
    saved("secret", splits(train=table(), test=table(TEXTS[:4], [-1] * 4)))
    saved("others", table(names=("bad", "good")))
    (Path("a.csv")).write_text("text,label\nfine,glad\n")
    for words, status, said in (
        (("hf:secret",), 65, "unrolled predict"),
        (("hf:others",), 65, "a label that training examples have"),
        (("hf:nobody/nothing",), 74, "unrolled data fetch hf:nobody/nothing"),
        (("hf:others", "--data", "a.csv"), 2, "leave out a.csv"),
        (("hf:others", "--format", "csv"), 2, "leave out --format"),
        (("reviews",), 74, "hf:reviews"),
        (("sst2",), 2, "hf:NAME"),
    ):
        unrolled("evaluate", run_of_reviews, "--data", *words).assert_refused(status, said)


def test_texts_of_a_dataset_are_predicted_and_explained(unrolled, run_of_reviews):
    fresh = ["a poor film", "a fine film"]
    saved("new", splits(train=table(), test=datasets.Dataset.from_dict({"number": [7, 8], "words": fresh})))
    found = unrolled("predict", run_of_reviews, "hf:new")
    assert [line.split(",")[:2] for line in found.out.splitlines()[1:]] == [["1", fresh[0]], ["2", fresh[1]]]
    assert len(unrolled("predict", run_of_reviews, "hf:new", "--split", "train").out.splitlines()) == 41
    shown = unrolled("explain", run_of_reviews, "--file", "hf:new", "--html", "page.html")
    assert shown.status == 0, shown.err
    assert all(text in shown.out for text in fresh)
    assert "2 texts" in shown.out
    named = unrolled("explain", run_of_reviews, "--file", "hf:new", "--text-column", "none")
    named.assert_refused(2, "number, words")
    unrolled("predict", run_of_reviews, "hf:new", "--split", "dev").assert_refused(65, "train, test")
    unrolled("predict", run_of_reviews, "hf:gone/x").assert_refused(74, "unrolled data fetch")
    unrolled("explain", run_of_reviews, "a film", "--split", "test").assert_refused(2, "--file")
