"""The command line as a whole: what it loads, what it prints, and how it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import unrolled as package
from unrolled.cli import convert, main
from unrolled.errors import DataError, UsageError

Command = Callable[..., Any]


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def test_help_names_every_command_and_loads_no_torch() -> None:
    program = (
        "import sys; from unrolled.cli.main import run; status = run(['--help']); "
        "print(status, sorted({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    done = python("-c", program)
    assert done.stderr == ""
    for command in ("demo", "train", "explain", "convert", "parameters", "--debug", "--version"):
        assert command in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


def test_the_module_runs_like_the_command() -> None:
    done = python("-m", "unrolled", "--version")
    assert (done.returncode, done.stdout) == (0, f"unrolled {package.__version__}\n")


@pytest.mark.parametrize("command", ["demo", "train", "explain", "convert", "parameters"])
def test_every_command_has_help(unrolled: Command, command: str) -> None:
    shown = unrolled(command, "--help")
    assert shown.status == 0
    assert "Usage: unrolled" in shown.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
        (["explain", "--nonsense"], "--nonsense"),
        (["convert", "only-one"], "target"),
        (["train", "nonsense"], "nonsense"),
    ],
)
def test_a_command_line_that_cannot_be_is_one_line_and_2(unrolled: Command, words: list[str], expected: str) -> None:
    unrolled(*words).assert_refused(2, expected)


def raising(error: BaseException) -> Callable[..., None]:
    def command(*_: object, **__: object) -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (OSError(28, "No space left on device", "run.json"), 74, "run.json: No space left on device"),
        (OSError("the disk is gone"), 74, "the disk is gone"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (DataError("two\n  lines"), 65, "two lines"),
        (UsageError("no such thing"), 2, "no such thing"),
    ],
)
def test_an_error_is_one_line_with_its_status(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, text: str
) -> None:
    monkeypatch.setattr(convert, "read_checkpoint", raising(error))
    unrolled("convert", "a", "b").assert_refused(status, text)


@pytest.mark.parametrize("place", [0, 1, 3])
def test_debug_shows_the_traceback_wherever_it_stands(unrolled: Command, place: int) -> None:
    words = ["convert", "none.pt", "b"]
    unrolled(*words).assert_refused(74, "none.pt")
    words.insert(place, "--debug")
    shown = unrolled(*words)
    assert shown.status == 74
    assert "Traceback (most recent call last)" in shown.err
    assert shown.err.splitlines()[-1].startswith("unrolled: error: ")


def test_an_error_nobody_foresaw_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "read_checkpoint", raising(AssertionError("a bug")))
    with pytest.raises(AssertionError, match="a bug"):
        main.run(["convert", "a", "b"])


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "unrolled", "--help"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode in {0, 1}
