from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.catalogue import Architecture
from unrolled.cli.train import classify
from unrolled.datasets import DATASETS
from unrolled.training.loop import TrainingSettings
from unrolled.training.run_folder import load_run

Command = Callable[..., Any]
QUICK = ("--hidden", 8, "--embedding", 8, "--epochs", 2, "--limit", 300)


def test_it_trains_saves_a_run_and_says_what_to_do_next(unrolled: Command, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "x"
    options = ("--encoder", "lstm", "--bidirectional", "--optimiser", "adagrad", "--lr", 0.05)
    done = unrolled("train", "classify", *options, *QUICK, "--out", folder)
    assert done.status == 0
    assert [line[:10] for line in done.err.splitlines()] == ["epoch 1/2 ", "epoch 2/2 "]
    result, hint = done.out.splitlines()
    assert result.startswith("test accuracy ")
    assert f"saved to {folder}" in result
    assert f"unrolled explain {folder} '" in hint
    run = load_run(folder)
    assert (run.config.encoder, run.config.bidirectional, run.settings.optimiser) == ("lstm", True, "adagrad")
    assert (run.data, run.labels, run.metrics["train_texts"]) == ("negation", ("negative", "positive"), 300)
    assert f"{run.metrics['test_accuracy']:.2%}" in result


def test_an_earlier_run_is_replaced_only_by_force(unrolled: Command, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    words = ("train", "classify", *QUICK, "--out", folder)
    assert unrolled(*words).status == 0
    unrolled(*words, "--seed", 1).assert_refused(2, f"{folder} exists", "--force")
    assert load_run(folder).settings.seed == 0
    assert unrolled(*words, "--seed", 1, "--force").status == 0
    assert load_run(folder).settings.seed == 1
    other = tmp_path / "letters"
    other.mkdir()
    unrolled("train", "classify", *QUICK, "--out", other, "--force").assert_refused(74, "is no run folder")


def test_it_learns_a_file_of_the_users(unrolled: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"text number {i} is {'odd' if i % 2 else 'even'}\t{i % 2}\n" for i in range(60)))
    assert unrolled("train", "classify", "--data", path, *QUICK, "--out", tmp_path / "x").status == 0
    assert load_run(tmp_path / "x").data == "mine"
    path.write_text("no label here\n")
    unrolled("train", "classify", "--data", path, "--out", tmp_path / "y").assert_refused(65, "mine.tsv:1: expected")
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (("--data", "negatoin"), 2, "unknown dataset 'negatoin'; did you mean 'negation'"),
        (("--encoder", "gruu"), 2, "unknown encoder 'gruu'; did you mean 'gru'"),
        (("--pooling", "mena"), 2, "did you mean 'mean'"),
        (("--optimiser", "adagrda"), 2, "did you mean 'adagrad'"),
        (("--hidden", 0), 2, "hidden is 0; expected"),
        (("--dropout", 1), 2, "dropout is 1.0; expected less than 1"),
        (("--hidden", "big"), 2, "valid integer"),
        (("--limit", 0), 2, "0 training examples were asked for; expected 1 or more"),
        (("--data", "sst2"), 2, "UNROLLED_DATA"),
        (("--data", "sst2", "--data-dir", "."), 74, "expected sst/train.txt, sst/train.txt.xz or"),
        (("--data", "gone.tsv"), 74, "gone.tsv: cannot be read"),
    ],
)
def test_what_cannot_be_is_one_line(
    unrolled: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    status: int,
    expected: str,
) -> None:
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    unrolled("train", "classify", *words).assert_refused(status, expected)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_tree_is_named_by_file_and_line(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "sst").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "sst" / f"{split}.txt").write_text("(3 (2 It) (4 good))\n(3 (2 It) (9 good))\n")
    words = ("train", "classify", "--data", "sst2", "--data-dir", tmp_path, "--out", tmp_path / "x")
    unrolled(*words).assert_refused(65, "train.txt:2: expected a label from 0 to 4 after '(', found '9'")


def test_the_options_defaults_are_those_of_the_library() -> None:
    defaults = {name: option.default for name, option in inspect.signature(classify).parameters.items()}
    for config in (Architecture(), TrainingSettings()):
        for name, value in config.model_dump().items():
            assert name == "clip" or defaults[name] == value, name


def test_the_help_names_every_dataset(unrolled: Command) -> None:
    text = unrolled("train", "classify", "--help").out
    assert all(name in text for name in DATASETS.names())
