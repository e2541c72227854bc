"""The command line as a whole: what it loads, what it prints, and how it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unrolled as package
from unrolled.cli import convert, main
from unrolled.cli.commands import COMMANDS
from unrolled.errors import DataError, UsageError

Command = Callable[..., Any]


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def test_help_names_every_command_and_loads_no_torch() -> None:
    program = (
        "import sys; from unrolled.cli.main import run; status = run(['--help']); "
        "heavy = {'torch', 'numpy', 'pydantic', 'matplotlib', 'unrolled.lab'} & set(sys.modules); "
        "print(status, sorted(heavy))"
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
        (["convert", "a", "b", "c"], "unexpected argument (c); expected: unrolled convert [OPTIONS] {source} {target}"),
        (["explain", "run", "- not bad"], "a text that begins with - is given after --"),
        (["explain", "run", "--not bad"], "a text that begins with - is given after --"),
    ],
)
def test_a_command_line_that_cannot_be_is_one_line_and_2(unrolled: Command, words: list[str], expected: str) -> None:
    unrolled(*words).assert_refused(2, expected)


def test_an_option_with_a_spelling_mistake_is_no_text(unrolled: Command) -> None:
    done = unrolled("explain", "run", "--expnsion", "path")
    done.assert_refused(2, "Possible options: --expansion")
    assert "begins with -" not in done.err


def test_a_group_without_a_command_ends_after_its_help_without_an_error(unrolled: Command) -> None:
    for words in ((), ("data",), ("train",)):
        shown = unrolled(*words)
        assert "Usage: unrolled" in shown.out
        assert (shown.status, shown.err) == (0, "")


def raising(error: BaseException) -> Callable[..., None]:
    def command(*_: object, **__: object) -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (OSError(28, "No space left on device", "run.json"), 74, "run.json: No space left on device"),
        (OSError("the disk is gone"), 74, "the disk is gone"),
        (MemoryError(), 2, "not enough memory"),
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


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AssertionError("a bug"), "internal error: AssertionError: a bug; please report it with the output of --debug"),
        (KeyError(), "internal error: KeyError; please report it"),
        (RuntimeError("shapes\nof a kernel"), "internal error: RuntimeError: shapes; please"),
    ],
)
def test_an_error_nobody_foresaw_is_one_line_too_and_not_hidden(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, error: Exception, text: str
) -> None:
    monkeypatch.setattr(convert, "read_checkpoint", raising(error))
    unrolled("convert", "a", "b").assert_refused(70, text)
    shown = unrolled("convert", "a", "b", "--debug")
    assert shown.status == 70
    assert shown.err.startswith("Traceback (most recent call last)")
    assert "in command" in shown.err


def test_what_asks_the_program_to_leave_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "read_checkpoint", raising(SystemExit(3)))
    with pytest.raises(SystemExit):
        main.run(["convert", "a", "b"])


@pytest.mark.parametrize("hidden", [10**14, 2**61, 10**23])
def test_a_network_without_room_is_a_usage_error(unrolled: Command, tmp_path: Path, hidden: int) -> None:
    words = ("train", "classify", "--data", "negation", "--limit", 20, "--hidden", hidden, "--out", tmp_path / "x")
    unrolled(*words).assert_refused(2, "not enough memory", "a smaller network")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "unrolled", "--help"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_own_help(unrolled: Command, name: str) -> None:
    own = " ".join(unrolled(name, "--help").out.split())
    assert COMMANDS[name].summary in own


def test_a_folder_that_was_deleted_under_the_command_is_named(unrolled: Command, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    unrolled("evaluate", "run").assert_refused(74, "the current folder has been deleted")


def test_of_an_option_before_its_command_the_commands_that_have_it_are_named(unrolled):
    unrolled("data", "--out", "x").assert_refused(2, "--out follows no command", "COMMAND --out, with one of table")
    for group, command in ((("data",), "list"), (("train",), "brackets"), ((), "demo")):
        path = " ".join(("unrolled", *group))
        refused = unrolled(*group, "--qqqq")
        refused.assert_refused(2, f"no such option of `{path}`: --qqqq; options stand behind its command: ")
        assert refused.err.endswith(f"{path} {command} --help\n")
        assert "follows no command" not in refused.err
