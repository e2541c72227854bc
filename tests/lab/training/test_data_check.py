"""A run knows the data that it was trained on: resume refuses others, and evaluate says what has changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from toy_tasks import classify, settings
from unrolled.errors import DataError, FileError
from unrolled.lab.data.checksums import CorpusChecksums, file_checksums
from unrolled.lab.data.corpus import Classification, Words
from unrolled.lab.data.formats import read_split
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_check import file_warnings, read_with_checksums, write_checksums
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_config import load_config
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.sample_check import sample_digest

LINES = [f"text {i} is {('bad', 'good')[i % 2]}\t{('neg', 'pos')[i % 2]}" for i in range(60)]


class Stop(Callback):
    def __init__(self, at=4):
        self.at = at

    def on_step(self, step):
        if step.number == self.at:
            raise InterruptedError


class Heard(Callback):
    def __init__(self):
        self.lines = []

    def on_message(self, text):
        self.lines.append(text)


@pytest.fixture
def files(tmp_path):
    """Three files, of which only train is given; the others are given as well where a test says so."""
    paths = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    for number, path in enumerate(paths.values()):
        path.write_text("\n".join(LINES[number * 15 : number * 15 + 30]) + "\n")
    return paths


def begin(files, folder, separate, callback=None):
    others = {name: (str(files[name]),) for name in ("dev", "test")} if separate else {}
    data = DataSettings(data=(str(files["train"]),), **others)
    corpus = data.load_corpus(Classification)
    chosen = settings(epochs=2, batch=4)
    return train(
        classify(corpus), corpus, chosen, folder, data=data, files=file_checksums(data.files()), callback=callback
    )


@pytest.mark.parametrize("name", ["train", "test"])
def test_a_file_that_changes_while_it_is_read_is_refused(files, name):
    data = DataSettings(data=(str(files["train"]),), test=(str(files["test"]),))

    def read():
        return data.load_corpus(Classification)

    def read_and_change():
        corpus = read()
        flip(files[name], 3)
        return corpus

    with pytest.raises(FileError, match=f"{name}.tsv changed while it was read"):
        read_with_checksums(read_and_change, data, None)
    corpus, checksums = read_with_checksums(read, data, None)  # it stands still again
    assert checksums == file_checksums(data.files())
    assert CorpusChecksums.of(corpus, checksums).changes(CorpusChecksums.of(read(), checksums)).lines == ()


@pytest.mark.parametrize("command", ["train", "resume", "evaluate"])
def test_no_command_takes_a_file_that_changes_while_it_is_read(unrolled, files, tmp_path, monkeypatch, command):
    def begun():
        begin(files, tmp_path / "run", separate=False, callback=Stop() if command == "resume" else None)

    if command == "resume":
        with pytest.raises(InterruptedError):
            begun()
    elif command == "evaluate":
        begun()
    load = DataSettings.load_corpus

    def load_and_change(*args, **kwargs):
        corpus = load(*args, **kwargs)
        flip(files["train"], 3)
        return corpus

    given = ("train", "classify", "--data", files["train"], "--out") if command == "train" else (command,)
    more = ("--epochs", 1, "--hidden", 2) if command == "train" else ()
    monkeypatch.setattr(DataSettings, "load_corpus", load_and_change)
    unrolled(*given, tmp_path / "run", *more).assert_refused(74, "changed while it was read", "give the same command")
    assert (tmp_path / "run").exists() == (command != "train")


@pytest.fixture
def stopped(files, tmp_path):
    with pytest.raises(InterruptedError):
        begin(files, tmp_path / "run", separate=True, callback=Stop())
    return tmp_path / "run"


def flip(path, line):
    rows = path.read_text().splitlines()
    rows[line] = rows[line].replace("\tneg", "\t?").replace("\tpos", "\tneg").replace("\t?", "\tpos")
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("name", ["train", "dev", "test"])
@pytest.mark.parametrize("line", [0, 7, 29])
def test_one_flipped_label_anywhere_stops_a_resume(unrolled, stopped, files, name, line):
    flip(files[name], line)
    found = unrolled("resume", stopped)
    found.assert_refused(
        65,
        f"{name}: 1 of 30 examples are new, the first is number {line + 1}",
        f"the file {files[name]} has other content",
        "--accept-changed-data",
    )


def test_changed_data_are_accepted_on_request_and_the_run_keeps_that(unrolled, stopped, files):
    flip(files["train"], 3)
    found = unrolled("resume", stopped, "--accept-changed-data")
    assert found.status == 0
    assert "the data have changed, and are accepted: train: 1 of 30 examples" in " ".join(found.err.split())
    (accepted,) = json.loads((stopped / "data.json").read_text())["accepted"]
    assert accepted["changes"][0].startswith("train: 1 of 30 examples are new")
    said = unrolled("evaluate", stopped)
    assert "warning: accepted when the training went on: train: 1 of 30 examples are new" in said.err
    assert "have changed since" not in said.err


def test_once_accepted_they_are_the_data_of_the_run(stopped, files):
    def again():
        return DataSettings(**json.loads((stopped / "config.json").read_text())["data"])

    flip(files["train"], 3)
    changed = again().load_corpus(Classification)
    with pytest.raises(InterruptedError):
        resume(stopped, changed, files=file_checksums(again().files()), callback=Stop(5), accept_changed_data=True)
    heard = Heard()
    resume(stopped, changed, files=file_checksums(again().files()), callback=heard)
    assert heard.lines == []


def test_the_model_card_counts_the_examples_that_were_accepted(unrolled, stopped, files):
    with files["train"].open("a") as file:
        file.write("one more text\tpos\n")
    assert unrolled("resume", stopped, "--accept-changed-data").status == 0
    card = (stopped / "README.md").read_text()
    assert "| train | 31 |" in card
    assert "| dev | 30 |" in card


def test_a_change_that_was_accepted_is_kept_without_the_name_of_the_home(unrolled, stopped, files, monkeypatch):
    monkeypatch.setenv("HOME", str(files["train"].parent))
    flip(files["train"], 3)
    assert unrolled("resume", stopped, "--accept-changed-data").status == 0
    (accepted,) = json.loads((stopped / "data.json").read_text())["accepted"]
    assert accepted["changes"][-1] == "the file ~/train.tsv has other content"
    assert str(files["train"].parent) not in (stopped / "data.json").read_text()


@pytest.mark.parametrize("label", ["neg", "other"])
def test_a_file_that_is_read_in_another_way_than_before_is_not_said_to_be_another(unrolled, files, tmp_path, label):
    """As a file with quotes behind spaces is: earlier versions left the quotes in texts and labels."""
    stopped = tmp_path / "run"
    with pytest.raises(InterruptedError):
        begin(files, stopped, separate=True, callback=Stop(12))  # behind the first epoch
    files["train"].write_text(files["train"].read_text() + f"another text\t{label}\nand more\t{label}\n")
    said = "the files are as they were, but an earlier version of unrolled read them in another way"
    assert said not in unrolled("resume", stopped).err  # the control: another file
    assert said not in unrolled("evaluate", stopped).err
    before = CorpusChecksums.from_record(json.loads((stopped / "data.json").read_text()))
    now = DataSettings(**json.loads((stopped / "config.json").read_text())["data"])
    files_now = CorpusChecksums.of(now.load_corpus(Classification), file_checksums(now.files())).files
    write_checksums(stopped, replace(before, files=files_now))
    resumed = unrolled("resume", stopped)
    assert (resumed.status, resumed.err.count(said), resumed.err.count("rain a new run on them")) == (65, 1, 1)
    evaluated = unrolled("evaluate", stopped)
    if label == "neg":
        assert f"warning: {said}: train a new run on them" in evaluated.err
    else:
        assert evaluated.status == 65
        assert f"{said}; train a new run on them" in evaluated.err


def test_a_change_that_leaves_the_examples_is_told_and_not_refused(unrolled, stopped, files):
    files["dev"].write_bytes(files["dev"].read_bytes().replace(b"\n", b"\r\n"))
    found = unrolled("resume", stopped)
    assert found.status == 0
    assert "has other content; but the examples are the same" in " ".join(found.err.split())


def test_other_labels_stop_even_who_accepts_changes(unrolled, stopped, files):
    files["train"].write_text(files["train"].read_text() + "a\tanother\nb\tanother\n")
    found = unrolled("resume", stopped, "--accept-changed-data")
    found.assert_refused(
        65, "the labels of the corpus were ('neg', 'pos'), and are ('another', 'neg'", "train a new run"
    )


def test_evaluate_says_what_changed_and_that_it_was_learned_from(unrolled, files, tmp_path):
    run = begin(files, tmp_path / "run", separate=False).folder
    clean = unrolled("evaluate", run)
    assert (clean.status, clean.err) == (0, "")
    files["train"].write_text("\n".join(LINES) + "\n")  # thirty more: the tenth that is held out is another one
    found = unrolled("evaluate", run)
    assert found.status == 0
    assert "warning: the data have changed since the training: test: " in found.err
    assert f"the file {files['train']} has other content" in found.err
    assert " examples of test are ones that the model was trained on" in found.err


def test_a_replaced_test_file_is_noticed(unrolled, files, tmp_path):
    run = begin(files, tmp_path / "run", separate=True).folder
    files["test"].write_text("\n".join(LINES[:10]) + "\n")
    said = unrolled("evaluate", run).err
    assert "test: 10 of 10 examples are new" in said
    assert "10 of the 10 examples of test are ones that the model was trained on" in said


def test_evaluate_refuses_data_whose_labels_are_others(unrolled, files, tmp_path):
    run = begin(files, tmp_path / "run", separate=False).folder
    files["train"].write_text("".join(f"text {i}\t{'abc'[i % 3]}\n" for i in range(40)))
    unrolled("evaluate", run).assert_refused(65, "the labels of the corpus were ('neg', 'pos')", "--data FILE")


def test_a_run_of_an_earlier_version_is_resumed_by_its_sample_and_evaluated_with_a_note(unrolled, stopped):
    """What an earlier version wrote: no data.json, and a fingerprint in the configuration."""
    task = load_config(stopped).task
    corpus = DataSettings(**json.loads((stopped / "config.json").read_text())["data"]).load_corpus(Classification)
    digest = sample_digest(4, task.encode(corpus.train), task.encode(corpus.dev))
    (stopped / "data.json").unlink()
    path = stopped / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": "0" * 16, "checksum": None}))
    with pytest.raises(DataError, match="was started with another corpus than"):
        resume(stopped, corpus)
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": digest, "checksum": None}))
    resume(stopped, corpus)
    assert load_run(stopped).metrics["epochs"] == 2
    assert "which kept no checksums: the data were not compared" in unrolled("evaluate", stopped).err


@pytest.mark.parametrize("content", ["[]", "{}", '{"accepted": [3]}', '{"accepted": [], "splits": []}'])
def test_checksums_of_nonsense_are_refused_in_one_line(unrolled, stopped, content):
    (stopped / "data.json").write_text(content)
    unrolled("resume", stopped).assert_refused(65, "data.json")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_another_column_of_labels_is_told_as_such(unrolled, tmp_path, suffix):
    path, run = tmp_path / f"reviews.{suffix}", tmp_path / "run"

    def write(kinds, marks):
        rows = [(f"the film number {i} is {kinds(i)} and so on", kinds(i), marks(i)) for i in range(60)]
        if suffix == "csv":
            path.write_text("words,first,second\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
        else:
            path.write_text("".join(json.dumps({"words": a, "first": b, "second": c}) + "\n" for a, b, c in rows))

    write(lambda i: ("bad", "good")[i % 2], lambda i: f"m{i}")
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1, "--device", "cpu")
    assert unrolled("train", "classify", "--data", path, *small, "--out", run).status == 0
    write(lambda i: f"good{i}", lambda i: f"in{2020 + i % 2}")
    chosen = (
        "other columns were chosen: texts from 'words', labels from 'first' before, "
        "and texts from 'words', labels from 'second' now; the labels of the corpus were ('bad', 'good'), and are "
        "('in2020', 'in2021')"
    )
    for done in ("metrics.json", "weights.safetensors", "README.md"):
        (run / done).unlink()
    found = unrolled("resume", run)
    assert found.status == 65
    assert chosen in found.err.splitlines()[-1]


@pytest.mark.parametrize("more", [{}, {"max_length": 2}])
def test_a_file_is_compared_with_what_the_training_read_of_it(files, tmp_path, more):
    data = DataSettings(data=(str(files["train"]),), **more)
    corpus = data.load_corpus(Classification)
    write_checksums(tmp_path, CorpusChecksums.of(corpus, file_checksums(data.files())))
    other = tmp_path / "other.tsv"
    other.write_text("another text\tpos\n")

    def warnings(*paths):
        return file_warnings(tmp_path, read_split(Classification, paths, corpus.labels).examples, paths, data)

    *whole, line = warnings(files["train"])
    assert line.startswith("24 of the 30 examples (80.0%) are ones that the model was trained on, and 3 more chose its")
    bound = "30 of the 30 examples have more tokens than the 2 of --max-length; they are read whole"
    assert whole == ([bound] if more else [])
    *_, line = warnings(files["train"], other)
    assert line.startswith("24 of the 31 examples (77.4%)")
    assert warnings(other) == ()


def test_running_text_is_compared_file_by_file(tmp_path):
    mine, copy, other = (tmp_path / name for name in ("mine.txt", "copy.txt", "other.txt"))
    for path, word in ((mine, "a"), (copy, "a"), (other, "b")):
        path.write_text(f"some words {word}\n" * 40)
    data = DataSettings(data=(str(mine),))
    corpus = data.load_corpus(Words)
    write_checksums(tmp_path, CorpusChecksums.of(corpus, file_checksums(data.files())))
    (line,) = file_warnings(tmp_path, corpus.train, [copy, other], data)
    assert line == f"{copy} has the content of {mine}, a file of the run's own data"
