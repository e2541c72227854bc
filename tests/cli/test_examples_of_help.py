"""The help of every command has an example, and every example is a command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from unrolled.cli.commands import COMMANDS
from unrolled.lab.tasks import TASKS

Command = Callable[..., Any]
GROUPS = {"train", "data"}
WITHOUT_ARGUMENTS = {"demo"}
LINES = [
    *((name,) for name in sorted({*COMMANDS} - GROUPS - WITHOUT_ARGUMENTS)),
    *(("train", name) for name in sorted(TASKS.names())),
    ("data", "table"),
]


def examples(unrolled: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    monkeypatch.setenv("COLUMNS", "300")
    lines = [line.strip() for line in unrolled(*words, "--help").out.splitlines()]
    return [shlex.split(line.partition(" >")[0].partition(" <")[0]) for line in lines if line.startswith("unrolled ")]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_command_has_an_example_and_each_is_a_command_line(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    found = examples(unrolled, words, monkeypatch)
    assert [line for line in found if tuple(line[1 : 1 + len(words)]) == words]
    for _, *line in found:
        done = unrolled(*line, "--help")
        assert done.status == 0, done.err
        for option in (word for word in line if word.startswith("--")):
            assert option in done.out, f"{option} is no option of {line[0]}"


def test_examples_stay_on_lines_of_their_own(unrolled: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(examples(unrolled, ("parameters",), monkeypatch)) == 2
    assert all(line.count("unrolled") == 1 for line in examples(unrolled, ("convert",), monkeypatch))
