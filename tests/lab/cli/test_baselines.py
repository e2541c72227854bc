"""After a training: what baselines reach, and the command that trains longer."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.cli.longer_training import longer_training
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
SMALL = ("--hidden", 8, "--embedding", 8)


@pytest.fixture
def stars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts with one to five stars, by their adjective."""
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(0)
    words = ["awful", "poor", "plain", "good", "superb"]
    rows = [(f"this {drawn.choice(['lamp', 'pan'])} is {words[n]}", n + 1) for n in drawn.choices(range(5), k=200)]
    path = tmp_path / "stars.csv"
    path.write_text("text,stars\n" + "".join(f"{text},{number}\n" for text, number in rows))
    return path


@pytest.mark.slow
def test_of_a_network_that_learned_nothing_the_printed_command_trains_one_that_does(
    unrolled: Command, stars: Path
) -> None:
    text = stars.read_text().replace(",1\n", ",bad\n").replace(",2\n", ",bad\n")
    stars.write_text(text.replace(",3\n", ",good\n").replace(",4\n", ",good\n").replace(",5\n", ",good\n"))
    sizes = ("--hidden", 32, "--embedding", 32, "--dropout", 0)
    command = ("train", "classify", "--data", "stars.csv", *sizes, "--out", "a run")
    done = unrolled(*command, "--epochs", 15)
    (line,) = (line for line in done.err.splitlines() if line.startswith("longer:  unrolled train "))
    words = shlex.split(line)[2:]
    kept = command[:-2]
    assert words[: len(kept)] == [str(word) for word in kept]
    again = unrolled(*words)
    assert again.status == 0, again.err
    assert load_run(Path("a run-longer")).metrics["test_accuracy"] == 1.0
    assert load_run(Path("a run")).metrics["test_accuracy"] < 1.0
    assert "longer:" not in again.err


def test_the_longer_training_replaces_each_option_once_and_keeps_the_others() -> None:
    settings = TrainingSettings(epochs=5, patience=2, lr=0.002)
    given = ["classify", "--epochs=5", "--data", "a.csv", "b.csv", "--force", "--lr", "0.002", "--bidirectional"]
    found = longer_training(given, settings, Path("runs/a-gru"))
    assert found == (
        "unrolled train classify --data a.csv b.csv --bidirectional --epochs 20 --patience 10 --lr 0.006 "
        "--out runs/a-gru-longer"
    )
    assert "--lr" not in longer_training(["lm"], TrainingSettings(optimiser="sgd", lr=1.0), Path("a"))
    assert "--lr" not in longer_training(["lm"], TrainingSettings(lr=0.05), Path("a"))


def test_the_longer_training_has_more_steps_where_they_are_limited_also_by_a_file() -> None:
    settings = TrainingSettings(steps=30)
    typed = longer_training(["lm", "--steps", "30", "--config", "a.yaml"], settings, Path("a"))
    assert typed == longer_training(["lm", "--config", "a.yaml"], settings, Path("a"))
    assert "--steps 120" in typed
    assert "--steps" not in longer_training(["lm"], TrainingSettings(), Path("a"))


def test_the_longer_training_replaces_no_run(tmp_path: Path) -> None:
    (tmp_path / "a-longer").mkdir()
    found = longer_training(["lm", "--out", "b", "--force"], TrainingSettings(), tmp_path / "a")
    assert found.endswith(shlex.join(["--out", str(tmp_path / "a-longer-longer")]))
    assert "--force" not in found


def test_a_regression_that_is_no_better_than_the_mean_is_told_so(
    unrolled: Command, stars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = unrolled("train", "regress", "--data", stars, *SMALL, "--epochs", 1, "--lr", 1e-6, "--out", "poor")
    assert "the same rating for every text, " in poor.err
    assert "longer:  unrolled train regress" in poor.err
    monkeypatch.setenv("WORLD_SIZE", "1")  # torchrun, whose command line is not known
    started = unrolled("train", "regress", "--data", stars, *SMALL, "--epochs", 1, "--lr", 1e-6, "--out", "started")
    assert "the same rating for every text, " in started.err
    assert "longer:" not in started.err
    monkeypatch.delenv("WORLD_SIZE")
    good = unrolled("train", "regress", "--data", stars, *SMALL, "--epochs", 20, "--lr", 0.02, "--out", "good")
    assert "for every text" not in good.err
    assert load_run(Path("good")).metrics["test_mse"] < load_run(Path("poor")).metrics["test_mse"]


def test_of_labels_that_are_several_numbers_the_task_of_numbers_is_named(
    unrolled: Command, stars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = (*SMALL, "--epochs", 1)
    said = "the 5 labels are numbers, learned as classes without an order; if they have one, such as stars, "
    said += "`unrolled train regress` learns it"
    assert said in unrolled("train", "classify", "--data", stars, *short, "--out", "five").err
    monkeypatch.setenv("RANK", "1")  # of several processes the first one says so
    assert "labels are numbers" not in unrolled("train", "classify", "--data", stars, *short, "--out", "second").err
    monkeypatch.delenv("RANK")
    text = stars.read_text()
    for number in "345":
        text = text.replace(f",{number}\n", ",2\n")
    stars.write_text(text)  # 1 and 2 are two classes
    assert "labels are numbers" not in unrolled("train", "classify", "--data", stars, *short, "--out", "two").err


def test_a_label_nan_is_learned_as_a_text_and_no_number(unrolled: Command, stars: Path) -> None:
    short = (*SMALL, "--epochs", 1)
    stars.write_text(stars.read_text().replace(",5\n", ",NaN\n"))
    done = unrolled("train", "classify", "--data", stars, *short, "--out", "nan")
    assert (done.status, "labels are numbers" in done.err) == (0, False)
    assert "labels that may stand for a missing one are learned as labels: NaN" in done.err
    assert "NaN" in load_run(Path("nan")).task.classes
    stars.write_text(stars.read_text().replace(",NaN\n", ",5.0\n"))
    assert "the 5 labels are numbers" in unrolled("train", "classify", "--data", stars, *short, "--out", "five").err


def test_an_option_without_a_task_and_a_file_in_the_place_of_one_name_the_tasks(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unrolled("train", "--data", "reviews.csv").assert_refused(2, "--data follows no command", "with one of brackets,")
    refused = unrolled("train", "reviews.csv")
    refused.assert_refused(2, "'reviews.csv' is no task", "unrolled train classify --data reviews.csv")
    unrolled("train", "a.TSV.gz").assert_refused(2, "'a.TSV.gz' is no task", "the file by --data")
    unrolled("train", "hf:imdb").assert_refused(2, "a dataset of Hugging Face's library", "--data hf:imdb")
    Path("reviews").write_text("")
    unrolled("train", "reviews").assert_refused(2, "'reviews' is no task", "--data reviews")
    for mistyped in ("clasify", "classify."):
        unrolled("train", mistyped, "--data", "a.csv").assert_refused(2, "did you mean 'classify'?")
    unrolled("train", "v1.5").assert_refused(2, "unknown task 'v1.5'; expected one of: ")
    unrolled("--vrsion").assert_refused(2, "--version")


def test_two_columns_of_labels_and_two_of_texts_are_named_at_once(unrolled: Command, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    rows = "".join(f"so good it is {n},it is a very good thing {n},{n % 5},{'ab'[n % 2]}\n" for n in range(40))
    path.write_text("title,review,rating,label\n" + rows)
    both = unrolled("train", "classify", "--data", path)
    both.assert_refused(65, "name one with --label-column, and the column of the texts with --text-column: title (")
    label = unrolled("train", "classify", "--data", path, "--label-column", "label")
    label.assert_refused(65, "cannot tell which column holds the texts", "name it with --text-column")
    assert "--label-column" not in label.err
    text = unrolled("train", "classify", "--data", path, "--text-column", "review")
    text.assert_refused(65, "name one with --label-column")
    assert "--text-column" not in text.err


def test_a_folder_of_transformers_is_no_run_and_its_loader_is_named(unrolled: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mamba"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "mamba", "architectures": ["MambaForCausalLM"]}')
    refused = unrolled("explain", folder, "a text")
    refused.assert_refused(65, "a model of transformers (mamba)", "transformers.MambaForCausalLM.from_pretrained")
    (folder / "config.json").write_text('{"a": 1}')
    unrolled("explain", folder, "a text").assert_refused(65, "not the configuration of a run")
