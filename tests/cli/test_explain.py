"""``unrolled explain``: what it shows, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.cli import explain_file
from unrolled.expansions import EXPANSIONS, resolve
from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
WORDS = ("not", "a", "bad", "film", "it", "is", "good", ".")
SENTENCE = "It is not a bad film."
EVERY = [str(resolve(name)) for name in EXPANSIONS.names()]


def make_run(folder: Path, **architecture: object) -> Path:
    """A run that has learned next to nothing."""
    examples = tuple(Example(WORDS, label) for label in (0, 1, 0, 1))
    corpus = Classification(name="told", labels=("negative", "positive"), train=examples, dev=examples, test=examples)
    task = Classify.from_corpus(corpus, PooledSettings(hidden=6, embedding=5, dropout=0.2, **architecture))
    settings = TrainingSettings(epochs=1, lr=0.05, device="cpu", seed=1)
    return train(task, corpus, settings, folder, data=DataSettings(data=("told",))).folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def only_account(path: Path) -> dict[str, Any]:
    (account,) = json.loads(path.read_text())["accounts"]
    return account


def test_a_run_is_explained_in_the_terminal(unrolled: Command, run: Path) -> None:
    done = unrolled("explain", run, SENTENCE)
    assert (done.status, done.err) == (0, "")
    for words in ("negative", "positive", "secant", "not a bad film", "remainder"):
        assert words in done.out


def test_a_large_file_of_ngrams_is_announced_and_max_order_makes_it_small(
    unrolled: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    assert unrolled("explain", run, SENTENCE, "--json", path).err == ""
    monkeypatch.setattr(explain_file, "_LARGE", 0)
    for words, longest in (((), 7), (("--max-order", 2), 2)):
        done = unrolled("explain", run, SENTENCE, "--json", path, "--force", *words)
        found = only_account(path)["ngrams"]
        assert max(each["order"] for each in found) == longest
        assert f"a.json will hold {len(found)} n-grams, about 0 MB; --max-order K leaves out" in done.err
    assert "n-grams of more than 2 tokens contribute" in " ".join(done.out.split())
    (tmp_path / "texts.txt").write_text(SENTENCE)
    done = unrolled("explain", run, "--file", tmp_path / "texts.txt", "--json", path, "--force", "--max-order", 2)
    assert only_account(path)["ngrams"] == found
    assert "will hold 13 n-grams" in done.err


def test_two_sentences_are_not_read_as_one(unrolled: Command, run: Path) -> None:
    unrolled("explain", run, "it is good", "it is not good").assert_refused(
        2, "several sentences, the second is 'it is not good'; give one, or write a sentence a line into a file: --file"
    )
    mixed = unrolled("explain", run, "it", "is", "not good")
    assert (mixed.status, mixed.out) == (0, unrolled("explain", run, "it is not good").out)


def test_the_sentence_needs_no_quotes(unrolled: Command, run: Path) -> None:
    assert unrolled("explain", run, *SENTENCE.split()).out == unrolled("explain", run, SENTENCE).out


def test_a_file_in_place_of_a_sentence_is_noted(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    before = unrolled("explain", run, path)
    assert before.status == 0
    assert "whose name" not in before.err
    path.write_text(f"text\n{SENTENCE}\n")
    done = unrolled("explain", run, path)
    assert (done.status, done.out) == (0, before.out)
    assert done.err == f"{path} is a file, whose name is explained; for its texts give --file\n"
    assert unrolled("explain", run, "it is " * 2000, "--max-order", 1).status == 0  # longer than a path can be


def test_the_record_adds_up(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    assert unrolled("explain", run, SENTENCE, "--json", path).status == 0
    record = only_account(path)
    assert record["tokens"] == ["It", "is", "not", "a", "bad", "film", "."]
    ledger = record["ledger"]
    assert sum(ngram["contribution"] for ngram in record["ngrams"]) == pytest.approx(ledger["ngrams"])
    parts = sum(value for name, value in ledger.items() if name != "logit")
    assert parts == pytest.approx(ledger["logit"])
    assert abs(ledger["remainder"]) < 1e-4 * abs(ledger["logit"])
    assert len(record["ngrams"]) == 7 * 8 // 2


@pytest.mark.parametrize("expansion", EVERY)
def test_every_expansion_can_be_asked_for(unrolled: Command, run: Path, tmp_path: Path, expansion: str) -> None:
    path = tmp_path / "it.json"
    assert unrolled("explain", run, SENTENCE, "--expansion", expansion, "--json", path).status == 0
    assert only_account(path)["expansion"] == expansion


def test_a_class_is_named_numbered_or_set_against_another(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.json"

    def ledger(*words: object) -> tuple[str, float]:
        assert unrolled("explain", run, SENTENCE, "--json", path, "--force", *words).status == 0
        record = only_account(path)
        return record["target"], record["ledger"]["logit"]

    positive = ledger("--target", "positive")
    negative = ledger("--target", 0)
    assert (positive[0], negative[0]) == ("positive", "negative")
    lower, higher = sorted((positive, negative), key=lambda pair: pair[1])
    for words in ((), ("--target", higher[0], "--against", lower[0])):
        name, difference = ledger(*words)
        assert name == f"{higher[0]} rather than {lower[0]}"
        assert difference == pytest.approx(higher[1] - lower[1], abs=1e-6)


def test_of_two_classes_the_difference_is_explained_in_terminal_page_and_file(
    unrolled: Command, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(f"\n{SENTENCE}\n")
    one = unrolled("explain", run, SENTENCE, "--html", tmp_path / "one.html").out
    many = unrolled("explain", run, "--file", tmp_path / "a.txt", "--html", tmp_path / "many.html").out
    name = next(name for name in ("negative rather than positive", "positive rather than negative") if name in one)
    assert many.startswith(f"line 2  {name}, difference ")
    assert unrolled("explain", run, "--file", tmp_path / "a.txt", "--target", 0).out.startswith(
        "line 2  negative, logit "
    )
    assert unrolled("explain", run, SENTENCE, "--target", 0, "--html", tmp_path / "target.html").status == 0
    for page, first in (("one.html", name), ("many.html", name), ("target.html", "negative")):
        assert re.search(r'"options": ?\[\{"name": ?"([^"]*)"', (tmp_path / page).read_text())[1] == first


def test_unknown_words_are_marked_and_noted(unrolled: Command, run: Path) -> None:
    done = unrolled("explain", run, "it is zzyzx")
    assert "zzyzx†" in done.out
    assert "† not in the model's vocabulary, read as <unk>: zzyzx" in " ".join(done.out.split())


def test_the_help_names_every_expansion(unrolled: Command) -> None:
    text = " ".join(unrolled("explain", "--help").out.replace("│", " ").split())
    listed, _, with_arguments = text.partition("with arguments: ")
    assert f" {', '.join(EXPANSIONS.names())};" in listed
    called = re.findall(r"\w+\([\w,]+\)", with_arguments.partition(".")[0])
    assert [name.partition("(")[0] for name in called] == ["shares", "taylor", "mean"]


def test_the_page_holds_every_expansion(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    done = unrolled("explain", run, SENTENCE, "--html", path)
    assert (done.status, done.err) == (0, "")
    assert str(path) in done.out
    text = path.read_text()
    for name in EVERY:
        assert name in text


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_triangle_is_drawn_in_the_format_of_its_name(
    unrolled: Command, run: Path, tmp_path: Path, suffix: str, magic: bytes
) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    path = tmp_path / f"triangle{suffix}"
    assert unrolled("explain", run, SENTENCE, "--png", path).status == 0
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize("architecture", [{"encoder": "rnn"}, {"encoder": "lstm", "bidirectional": True}])
def test_other_networks_are_explained_too(unrolled: Command, tmp_path: Path, architecture: dict[str, object]) -> None:
    make_run(tmp_path / "other", **architecture, layers=2, pooling="attention")
    path = tmp_path / "it.json"
    words = ("explain", tmp_path / "other", SENTENCE, "--json", path, "--html", tmp_path / "it.html")
    assert unrolled(*words).status == 0
    ledger = only_account(path)["ledger"]
    assert abs(ledger["remainder"]) < 1e-4 * abs(ledger["logit"])


def test_top_says_how_many_ngrams_are_listed(unrolled: Command, run: Path) -> None:
    def length(top: int) -> int:
        return unrolled("explain", run, SENTENCE, "--top", top).out.count("\n")

    assert length(3) == length(2) + 1


# What is refused of a run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--expansion", "pth"], "did you mean 'path'?"),
        (["--target", "2"], "class 2 is out of range; expected 0 to 1"),
        (["--target=-1"], "class -1 is out of range"),
        (["--target", "positve"], "did you mean 'positive'?"),
        (["--target", "0", "--against", "negative"], "negative against itself"),
        (["--png", "triangle.jpeg"], "one of: .pdf, .png, .svg"),
        (["--top", "-1"], "--top"),
    ],
)
def test_arguments_that_cannot_be_are_refused(unrolled: Command, run: Path, words: list[str], expected: str) -> None:
    unrolled("explain", run, SENTENCE, *words).assert_refused(2, expected)


@pytest.mark.parametrize("sentence", ["", "   "])
def test_an_empty_sentence_is_refused(unrolled: Command, run: Path, sentence: str) -> None:
    unrolled("explain", run, sentence).assert_refused(2, "the sentence is empty")


def test_a_sentence_alone_is_refused(unrolled: Command) -> None:
    unrolled("explain", SENTENCE).assert_refused(2, "expected a run folder and a sentence")


def test_a_run_that_is_not_there_or_not_whole_is_refused(unrolled: Command, run: Path, tmp_path: Path) -> None:
    unrolled("explain", tmp_path / "none", SENTENCE).assert_refused(74, "none")
    (tmp_path / "letters").mkdir()
    unrolled("explain", tmp_path / "letters", SENTENCE).assert_refused(65, "is not a run folder")
    for name in ("config.json", "task.json", "weights.safetensors"):
        broken = tmp_path / f"without {name}"
        shutil.copytree(run, broken)
        whole = (broken / name).read_bytes()
        (broken / name).write_bytes(whole[: len(whole) // 2])
        unrolled("explain", broken, SENTENCE).assert_refused(65, name)
        (broken / name).unlink()
        unrolled("explain", broken, SENTENCE).assert_refused(65, name)


@pytest.mark.parametrize(("flag", "name"), [("--html", "a.html"), ("--json", "a.json"), ("--png", "a.png")])
def test_a_file_that_cannot_be_written_leaves_nothing(
    unrolled: Command, run: Path, tmp_path: Path, flag: str, name: str
) -> None:
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    for folder in ("none", "file"):
        done = unrolled("explain", run, SENTENCE, flag, tmp_path / folder / name)
        done.assert_refused(74, "cannot be written", name)
    (tmp_path / name).write_text("mine")
    words = ("explain", run, SENTENCE, flag, tmp_path / name)
    unrolled(*words).assert_refused(2, f"{name} already exists", "--force")
    assert (tmp_path / name).read_text() == "mine"
    (tmp_path / name).unlink()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words", [("--html", "no/a.html"), ("--png", "a.gif"), ("--json", "."), ("--html", "a.svg", "--png", "a.svg")]
)
def test_files_that_cannot_be_written_are_refused_before_any_work(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    from unrolled.cli import explain

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(explain, "open_run", lambda *_: pytest.fail("it opened the run"))
    done = unrolled("explain", "run", SENTENCE, *words)
    done.assert_refused(done.status, words[-1])
    assert done.status in (2, 74)
