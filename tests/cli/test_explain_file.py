"""``unrolled explain --file``: a line for every text, one page of all, and files that cannot be read."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.cells import cell_len
from safetensors.torch import save_file
from torch import nn

from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
WORDS = ("not", "a", "bad", "film", "it", "is", "good", ".")
TEXTS = ["It is not a bad film.", "good", "a film, a bad film"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    examples = tuple(Example(WORDS, label) for label in (0, 1, 0, 1))
    corpus = Classification(name="told", labels=("negative", "positive"), train=examples, dev=examples, test=examples)
    task = Classify.from_corpus(corpus, PooledSettings(hidden=6, embedding=5))
    settings = TrainingSettings(epochs=1, lr=0.05, device="cpu", seed=1)
    folder = tmp_path_factory.mktemp("runs") / "run"
    return train(task, corpus, settings, folder, data=DataSettings(data=("told",))).folder


def written(folder: Path, name: str) -> Path:
    """The texts in one of the forms that ``predict`` reads."""
    path = folder / name
    contents = {
        "texts.txt": "\n".join([*TEXTS[:1], "", *TEXTS[1:]]) + "\n",
        "texts.csv": "id,review,stars\n" + "".join(f'{k},"{text}",{k % 5}\n' for k, text in enumerate(TEXTS)),
        "texts.tsv": "review\tshop\n" + "".join(f"{text}\tx\n" for text in TEXTS),
        "texts.jsonl": "".join(json.dumps({"review": text, "n": 1}) + "\n" for text in TEXTS),
    }
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(contents[name.removesuffix(".gz")].encode()))
    else:
        path.write_text(contents[name])
    return path


@pytest.mark.parametrize("name", ["texts.txt", "texts.csv", "texts.tsv", "texts.jsonl", "texts.txt.gz"])
def test_every_text_is_a_line_and_an_item_of_the_page(unrolled: Command, run: Path, tmp_path: Path, name: str) -> None:
    path, page, records = written(tmp_path, name), tmp_path / "page.html", tmp_path / "all.json"
    column = ("--text-column", "review") if name[6:] in ("csv", "tsv", "jsonl") else ()
    done = unrolled("explain", run, "--file", path, "--html", page, "--json", records, *column)
    assert done.status == 0, done.err
    lines = done.out.splitlines()[: len(TEXTS)]
    accounts = json.loads(records.read_text())["accounts"]
    assert len(accounts) == len(lines) == len(TEXTS)
    for line, text, account in zip(lines, TEXTS, accounts, strict=True):
        assert text in line
        assert account["target"] in line
        assert unrolled("explain", run, text, "--json", tmp_path / "one.json", "--force").status == 0
        (one,) = json.loads((tmp_path / "one.json").read_text())["accounts"]
        assert one == account
    assert len(re.findall(r'"tokens":', page.read_text())) >= len(TEXTS)
    assert "Explanations of" in page.read_text()


def test_lines_are_numbered_as_in_the_file(unrolled: Command, run: Path, tmp_path: Path) -> None:
    done = unrolled("explain", run, "--file", written(tmp_path, "texts.txt"))
    assert [line.split()[:2] for line in done.out.splitlines()[:3]] == [["line", "1"], ["line", "3"], ["line", "4"]]
    assert "3 texts; 1 without a word is left out" in done.out


def test_a_page_holds_so_many_texts(unrolled: Command, run: Path, tmp_path: Path) -> None:
    words = ("--html", tmp_path / "page.html", "--page-texts", 2)
    done = unrolled("explain", run, "--file", written(tmp_path, "texts.txt"), *words)
    assert "the first 2 of 3 texts" in done.out
    assert "good" in done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("good", "--page-texts", 2), "--page-texts is for --file"),
        (("good", "--no-header"), "--no-header is for --file"),
        (("--file", "texts.txt", "--page-texts", 2), "--page-texts is for --html and --json"),
        (("--file", "texts.txt", "--top", 2), "--top lists n-grams of one sentence"),
        (("good", "--json", "-"), "a file is written to a path, found -"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    unrolled: Command,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "texts.txt")
    unrolled("explain", run, *words).assert_refused(2, expected)


def test_one_target_for_all(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "texts.txt")
    done = unrolled("explain", run, "--file", path, "--target", "negative", "--against", "positive")
    assert done.out.count("negative rather than positive") == 3
    unrolled("explain", run, "--file", path, "--target", "neutral").assert_refused(2, "texts.txt, line 1", "neutral")


def test_phrases_of_all_texts_are_a_table(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path, table = tmp_path / "texts.txt", tmp_path / "phrases.csv"
    path.write_text("".join(f"{text}\n" for text in [*TEXTS] * 3))
    words = ("explain", run, "--file", path, "--phrases", table)
    done = unrolled(*words, "--target", "positive", "--against", "negative", "--html", tmp_path / "page.html")
    assert done.status == 0, done.err
    assert "Phrases of all texts" in (tmp_path / "page.html").read_text()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = load_run(run).explain_batch(TEXTS * 3, "positive", against="negative").phrases()
    assert [(row["text"], int(row["texts"]), int(row["count"])) for row in rows] == [
        (each.text, each.texts, each.count) for each in found
    ]
    assert [float(row["phrase_score"]) for row in rows] == [each.phrase_score for each in found]
    assert str(found) in done.out
    unrolled(*words, "--target", "positive").assert_refused(2, "phrases.csv already exists")
    unrolled("explain", run, "good", "--phrases", tmp_path / "no.csv").assert_refused(2, "--file")


def test_phrases_of_several_outputs_are_refused_at_the_first_text(unrolled: Command, tmp_path: Path) -> None:
    torch.manual_seed(0)
    parts = nn.ModuleDict({"embed": nn.Embedding(2, 3), "rnn": nn.RNN(3, 4), "head": nn.Linear(4, 2, bias=False)})
    with torch.no_grad():
        parts.embed.weight[1] = -parts.embed.weight[0]
        parts.rnn.bias_ih_l0.zero_()
        parts.rnn.bias_hh_l0.zero_()  # the states of the two words have opposite signs, so do their logits
    save_file(parts.state_dict(), tmp_path / "w.safetensors")
    (tmp_path / "words.txt").write_text("good\nbad\n")
    (tmp_path / "texts.txt").write_text("good\nbad\n" * 5)
    words = ("explain", "--weights", tmp_path / "w.safetensors", "--vocab", tmp_path / "words.txt")
    words += ("--nonlinearity", "tanh", "--file", tmp_path / "texts.txt", "--phrases", tmp_path / "p.csv")
    done = unrolled(*words)
    done.assert_refused(2, "line 1: ", "the model has 2; give --target")
    assert not done.out  # before any text is explained
    assert not (tmp_path / "p.csv").exists()
    assert unrolled(*words, "--target", "0").status == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        good, bad = (float(row["phrase_score"]) for row in csv.DictReader(file))
    assert good == pytest.approx(-bad)


def test_several_files_are_read_one_after_another(unrolled: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good\n")
    (tmp_path / "b.txt").write_text("bad\n")
    done = unrolled("explain", run, "--file", tmp_path / "a.txt", "--file", tmp_path / "b.txt")
    assert "2 texts" in done.out
    assert [line.split()[:3] for line in done.out.splitlines()[:2]] == [
        [str(tmp_path / name), "line", "1"] for name in ("a.txt", "b.txt")
    ]


def test_a_file_of_weights_explains_files(unrolled: Command, tmp_path: Path) -> None:
    torch.manual_seed(2)
    parts = {"emb": nn.Embedding(9, 4), "core": nn.LSTM(4, 5), "fc": nn.Linear(5, 3)}
    save_file(nn.ModuleDict(parts).state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(["<unk>", *WORDS]) + "\n")
    words = ("--weights", tmp_path / "net.safetensors", "--vocab", tmp_path / "vocab.txt")
    done = unrolled("explain", *words, "--file", written(tmp_path, "texts.txt"))
    assert done.status == 0, done.err
    assert done.out.count("class ") == 3


def test_what_cannot_be_read_is_one_line(unrolled: Command, run: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "texts.txt")
    for name, content, status, said in (
        ("empty.txt", b"", 65, "found none"),
        ("blank.txt", b"\n \n", 65, "found none"),
        ("latin.txt", b"caf\xe9\n", 65, "UTF-8"),
        ("two.csv", b"a,b\nx y z,some other text\n", 65, "two.csv"),
        ("bad.jsonl", b"{\n", 65, "bad.jsonl"),
    ):
        (tmp_path / name).write_bytes(content)
        unrolled("explain", run, "--file", tmp_path / name).assert_refused(status, said)
    unrolled("explain", run, "--file", tmp_path / "none.txt").assert_refused(74, "none.txt")
    unrolled("explain", run, "--file", tmp_path).assert_refused(74, str(tmp_path))
    unrolled("explain", tmp_path / "no-run", "--file", path).assert_refused(74, "no-run")
    unrolled("explain", run, "good", "--file", path).assert_refused(2, "unexpected 'good'")
    unrolled("explain", run, "--file", path, "--png", tmp_path / "a.png").assert_refused(2, "--html")
    unrolled("explain", run, "--file", path, "--text-column", "x").assert_refused(2, "--text-column")
    unrolled("explain", run, "good", "--text-column", "x").assert_refused(2, "--file")
    unrolled("explain", run, "--file", path, "--html", tmp_path / "no" / "p.html").assert_refused(74, "does not exist")
    unrolled("explain").assert_refused(2, "expected a run folder and a sentence")


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_breaks_the_line_of_a_text_between_words(
    unrolled: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    path = tmp_path / "texts.txt"
    path.write_text(f"{' '.join(TEXTS)}\n{'好' * 5} film 好{'好好 ' * 20}\n{'x' * 300}\n")
    monkeypatch.setenv("COLUMNS", str(columns))
    piped = unrolled("explain", run, "--file", path).out
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    shown = unrolled("explain", run, "--file", path).out
    assert max(map(cell_len, shown.splitlines())) <= columns < max(map(cell_len, piped.splitlines()))
    assert [line[:4] for line in piped.splitlines()[:3]] == ["line"] * 3
    assert "".join(shown.split()) == "".join(piped.split())
    first = shown.partition("line 2")[0]
    assert first.split() == piped.splitlines()[0].split()
