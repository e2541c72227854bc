"""Judging again, and going on: what a run says of itself it says when asked anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unrolled.lab.data.batches.base import bounded_plan
from unrolled.lab.data.corpus import Classification
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.training.evaluation import evaluate, evaluate_texts
from unrolled.lab.training.run_folder import load_run

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier of the negation corpus."""
    from unrolled.cli.main import run

    folder = tmp_path_factory.mktemp("runs") / "x"
    words = ("train", "classify", "--data", "negation", "--hidden", "8", "--embedding", "8", "--epochs", "2")
    assert run([*words, "--limit", "300", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("split", ["test", "dev"])
def test_a_run_is_judged_again_as_it_was(unrolled: Command, trained: Path, split: str) -> None:
    done, run = unrolled("evaluate", trained, "--split", split), load_run(trained)
    assert done.status == 0
    assert f"accuracy {run.metrics[f'{split}_accuracy']:.2%}, loss {run.metrics[f'{split}_loss']:.4g}" in done.out
    assert done.out.startswith(f"negation, {split} (200): ")
    assert "accuracy: share of texts with the right class" in done.out


def test_the_model_runs_once_for_the_metrics_and_the_predictions(
    unrolled: Command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    forward = Classifier.forward
    monkeypatch.setattr(Classifier, "forward", lambda self, *given: rows.append(len(given[0])) or forward(self, *given))
    mine = tmp_path / "mine.tsv"
    mine.write_text("".join(f"this film was {'very ' * (i % 7)}good\tpositive\n" for i in range(200)))
    done = unrolled("evaluate", trained, "--data", mine, "--predictions", tmp_path / "found.csv")
    assert done.status == 0
    assert sum(rows) == 200


def test_outputs_beside_the_metrics_are_in_the_order_of_the_texts(trained: Path) -> None:
    run, cpu = load_run(trained), torch.device("cpu")
    examples = run.data.reload_corpus(Classification).test
    encoded = run.task.encode(examples)
    metrics, outputs = evaluate_texts(run.text_task(), run.model, encoded, cpu)
    assert metrics == evaluate(run.task, run.model, encoded, cpu)
    expected = run.outputs_of([example.tokens for example in examples])
    np.testing.assert_array_equal(outputs.double().numpy(), expected)
    as_they_ran = torch.cat(list(bounded_plan(encoded, run.task.evaluation_rows(encoded), 10**6)))
    assert not np.array_equal(outputs[as_they_ran].double().numpy(), expected)


def test_files_of_ones_own_are_judged_with_the_runs_labels(unrolled: Command, trained: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.tsv"
    mine.write_text("this film was good\tpositive\n")  # one class only, and the second of the run's two
    good = unrolled("evaluate", trained, "--data", mine)
    mine.write_text("this film was good\tnegative\n")
    bad = unrolled("evaluate", trained, "--data", mine)
    assert good.status == bad.status == 0
    assert {"accuracy 100.00%" in good.out, "accuracy 100.00%" in bad.out} == {True, False}
    mine.write_text("this film was good\tpositive\nit was fine\tneutral\n")
    unrolled("evaluate", trained, "--data", mine).assert_refused(65, "mine.tsv:2: expected a label", "'neutral'")


def test_what_cannot_be_judged_is_one_line(unrolled: Command, trained: Path, tmp_path: Path) -> None:
    unrolled("evaluate", trained, "--split", "tset").assert_refused(2, "unknown split 'tset'; did you mean 'test'")
    unrolled("evaluate", tmp_path / "none").assert_refused(74, "no run folder")
    (tmp_path / "x.conll").write_text("a O\n")
    unrolled("evaluate", trained, "--data", tmp_path / "x.conll").assert_refused(2, "no format of the suffix '.conll'")
    unrolled("evaluate", trained, "--page-errors", 3).assert_refused(2, "--page-errors is for --html")
    unrolled("evaluate", trained, "--format", "csv").assert_refused(2, "--format", "are for --data FILE")
    for words in (("new.csv",), ("new.csv", "--errors", 3), ("--errors", 3, "new.csv")):
        named = "'new.csv' follows no option; a dataset or a file is named by --data: --data new.csv"
        unrolled("evaluate", trained, *words).assert_refused(2, named)
    unrolled("evaluate", trained, "--force", "yes").assert_refused(2, "--force takes no value, found 'yes'; ")


@pytest.mark.parametrize("words", [("evaluate", "run", "new.csv"), ("train", "classify", "new.csv")])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_help_is_shown_on_a_line_with_a_word_too_many(unrolled: Command, words: tuple[str, ...], flag: str) -> None:
    done = unrolled(*words, flag)
    assert (done.status, "--skip-invalid" in done.out) == (0, True)


def test_a_finished_run_is_resumed_at_once_and_stays_as_it_was(
    unrolled: Command, trained: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(trained, tmp_path / "x")
    before = (folder / "weights.safetensors").read_bytes()
    done = unrolled("resume", folder)
    assert done.status == 0
    assert done.err == f"{folder} is already finished; nothing was trained. For other settings, train a new run\n"
    assert f"{load_run(trained).metrics['test_accuracy']:.2%}" in done.out
    assert (folder / "weights.safetensors").read_bytes() == before
    unrolled("resume", tmp_path / "none").assert_refused(74, "no run folder")


def test_a_run_on_a_file_is_judged_and_resumed_from_any_folder(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("there", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "there")
    mine = Path("mine.tsv")
    mine.write_text("".join(f"text number {i}\t{i % 2}\n" for i in range(40)))
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1)
    done = unrolled("train", "classify", "--data", mine, *small, "--out", "x")
    sizes = (
        "texts: 32 for train, 4 for dev, 4 for test; few texts to measure accuracy on dev and test; "
        "1 of 2 classes without an example on dev"
    )
    assert (done.status, done.err.splitlines()[0]) == (0, sizes)
    first = unrolled("evaluate", "x")
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = Path("..") / "there" / "x"
    assert (first.status, unrolled("evaluate", run)) == (0, first)
    assert unrolled("resume", run).status == 0
    yours = (tmp_path / "there" / "mine.tsv").rename("yours.tsv")
    for command in ("evaluate", "resume"):
        done = unrolled(command, run)
        done.assert_refused(74, "mine.tsv: no such file, but the run was trained on it", "--data FILE")
    assert unrolled("evaluate", run, "--data", yours).status == 0


def test_a_run_of_brackets_is_judged_at_every_distance_and_its_language_is_made_again(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    language = "dyck(3,2,seed=5,symbols=(300,100,200))"
    words = ("train", "brackets", "--data", language, "--epochs", 1)
    assert unrolled(*words).status == 0
    (run,) = Path("runs").iterdir()
    assert run.name == "dyck-3-2-seed-5-symbols-300-100-200-dyck"
    done, kept = unrolled("evaluate", run), load_run(run)
    assert (kept.task.kinds, kept.task.depth, kept.data.data) == (3, 2, (language,))
    assert f"loss {kept.metrics['test_loss']:.4g}" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    rows = lines[lines.index(["distance", "mean", "least"]) + 1 :]
    assert rows[0][0] == "1"
    assert min(float(row[2].rstrip("%")) for row in rows) == round(100 * kept.metrics["test_wcpa"], 2)
    mine = Path("mine.txt")
    mine.write_text("([{}])\n()\n")
    done = unrolled("evaluate", run, "--data", mine)
    done.assert_refused(65, "string 1: bracket 3 opens level 3; expected at most 2")
    mine.write_text("[{}]()\n{}\n")
    assert unrolled("evaluate", run, "--data", mine).out.splitlines()[-1].split()[0] == "3"
    mine.write_text("<>\n")
    unrolled("evaluate", run, "--data", mine).assert_refused(65, "mine.txt:1: expected a label", "'<>'")


def test_of_classes_that_are_numbers_a_target_is_a_name_and_no_index(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stars = {"1": "awful", "2": "dull", "10": "great"}  # their indices are 0, 2 and 1
    Path("stars.tsv").write_text("".join(f"a {stars[star]} film\t{star}\n" for star in list(stars) * 8))
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1)
    assert unrolled("train", "classify", "--data", "stars.tsv", *small, "--out", "r").status == 0
    said = unrolled("explain", "r", "a dull film", "--target", "2").out
    logits = dict(zip(*[iter(said.splitlines()[0].removeprefix("logits: ").split())] * 2, strict=True))
    assert f"= logit            {logits['2']}" in said
    for absent in ("0", "3"):
        done = unrolled("explain", "r", "a dull film", "--target", absent)
        done.assert_refused(2, f"unknown class '{absent}'")
