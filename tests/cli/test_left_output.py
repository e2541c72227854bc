"""A reader that leaves (`| head`) ends a command without an error, and takes no file that was asked for with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")]
TEXTS = ("a b c", "b", "c c a b", "a a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("weights")
    parts = nn.ModuleDict({"embed": nn.Embedding(3, 2), "rnn": nn.GRU(2, 4), "head": nn.Linear(4, 2)})
    save_file(parts.state_dict(), place / "w.safetensors")
    (place / "words.txt").write_text("a\nb\nc\n")
    (place / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS * 20))
    return place


def left(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `unrolled explain` with an output whose reader has left, unbuffered so that the first line meets it."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-u", "-m", "unrolled", "explain", "--weights", "w.safetensors", "--vocab", "words.txt"]
    try:
        return subprocess.run(
            [*command, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False, cwd=folder
        )
    finally:
        os.close(write)


@pytest.mark.parametrize(
    ("name", "words"),
    [pytest.param("one", (TEXTS[0],), marks=pytest.mark.fuzz), ("all", ("--file", "texts.txt"))],
)
def test_files_are_written_whole_without_a_reader(folder: Path, name: str, words: tuple[str, ...]) -> None:
    files = {suffix: folder / f"{name}.{suffix}" for suffix in ("json", "html")}
    done = left(folder, *words, "--json", files["json"].name, "--html", files["html"].name)
    assert (done.returncode, done.stderr) == (0, "")
    accounts = json.loads(files["json"].read_text())["accounts"]
    assert [" ".join(each["tokens"]) for each in accounts] == ([TEXTS[0]] if name == "one" else [*TEXTS * 20])
    assert files["html"].read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize("words", [pytest.param((TEXTS[0],), marks=pytest.mark.fuzz), ("--file", "texts.txt")])
def test_without_files_the_command_ends_where_its_reader_left(folder: Path, words: tuple[str, ...]) -> None:
    done = left(folder, *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_is_an_error_without_a_reader(folder: Path) -> None:
    done = left(folder, "a zorgle", "--json", "none.json")
    assert done.returncode == 65
    assert done.stderr.count("\n") == 1
    assert not (folder / "none.json").exists()


def test_an_error_that_nobody_reads_keeps_its_exit_code(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["--weights", "w.safetensors", "--vocab", "words.txt", "a zorgle"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "unrolled", "explain", *words], stdout=write, stderr=write, check=False, cwd=folder
        )
    finally:
        os.close(write)
    assert done.returncode == 65


def test_a_training_whose_progress_nobody_reads_is_finished(tmp_path: Path) -> None:
    rows = "".join(f"a {('dull', 'great')[n % 2]} film of day {n},{('bad', 'good')[n % 2]}\n" for n in range(40))
    (tmp_path / "a.csv").write_text(f"text,label\n{rows}")
    read, write = os.pipe()
    os.close(read)
    words = ["train", "classify", "--data", "a.csv", "--epochs", "2", "--hidden", "4", "--out", "run"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "unrolled", *words], stdout=subprocess.PIPE, stderr=write, check=False, cwd=tmp_path
        )
    finally:
        os.close(write)
    assert done.returncode == 0
    assert "epoch" in done.stdout.decode()
    assert (tmp_path / "run" / "metrics.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk as Linux has it")
def test_an_output_that_cannot_be_written_is_named(folder: Path) -> None:
    command = [sys.executable, "-m", "unrolled", "explain", "--weights", "w.safetensors", "--vocab", "words.txt"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, TEXTS[0]], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=folder
        )
    assert done.returncode == 74
    assert done.stderr == (
        "unrolled: error: cannot write the output (standard output): No space left on device; it is not whole\n"
    )
