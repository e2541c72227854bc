"""Judging again, and going on: what a run says of itself it says when asked anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.training.run_folder import load_run

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
    assert "accuracy: the share of texts classified rightly" in done.out


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
    unrolled("evaluate", trained, "--data", tmp_path / "x.conll").assert_refused(2, "no format of the suffix '.conll'")


def test_a_finished_run_is_resumed_at_once_and_stays_as_it_was(
    unrolled: Command, trained: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(trained, tmp_path / "x")
    before = (folder / "weights.safetensors").read_bytes()
    done = unrolled("resume", folder)
    assert done.status == 0
    assert f"{load_run(trained).metrics['test_accuracy']:.2%}" in done.out
    assert (folder / "weights.safetensors").read_bytes() == before
    unrolled("resume", tmp_path / "none").assert_refused(74, "no run folder")
