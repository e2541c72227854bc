"""The help of every command has an example, and every example is a command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from unrolled.cli.commands import COMMANDS
from unrolled.lab.cli.data import app as data
from unrolled.lab.tasks import TASKS

Command = Callable[..., Any]
WITHOUT_ARGUMENTS = {"demo"}
GROUPS = {
    "train": sorted(TASKS.names()),
    "data": sorted(str(each.name) for each in data.registered_commands),
}
LINES = [
    *((name,) for name in sorted({*COMMANDS} - {*GROUPS} - WITHOUT_ARGUMENTS)),
    *((group, name) for group, names in GROUPS.items() for name in names),
]


SHOWN: dict[tuple[str, ...], list[str]] = {}
"""The help of each command, which the first of its tests made."""


def shown_lines(unrolled: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "300")
    if words not in SHOWN:
        SHOWN[words] = [line.strip() for line in unrolled(*words, "--help").out.splitlines()]
    return SHOWN[words]


def examples(lines: list[str]) -> list[list[str]]:
    return [shlex.split(line.partition(" >")[0].partition(" <")[0]) for line in lines if line.startswith("unrolled ")]


def option_names(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_command_has_an_example_and_each_is_a_command_line(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    lines = shown_lines(unrolled, words, monkeypatch)
    found = examples(lines)
    assert [line for line in found if tuple(line[1 : 1 + len(words)]) == words]
    for _, *line in found:
        done = unrolled(*line, "--help")
        assert done.status == 0, done.err
        named = {word.partition("=")[0] for word in line if word.startswith("--")}
        options = "\n".join(each for each in done.out.splitlines() if each.startswith("│"))
        assert named <= option_names(options), f"{named} of {line[0]}"


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_an_example_stays_on_a_line_of_its_own(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for line in shown_lines(unrolled, words, monkeypatch):
        assert len(re.findall(r"(?<!`)\bunrolled [a-z]", line)) <= 1


def test_the_beginning_of_an_option_is_none() -> None:
    assert option_names("│ --data-dir  a --no-header, non--sense") == {"--data-dir", "--no-header"}


def test_the_groups_have_all_their_commands() -> None:
    assert {("data", "list"), ("data", "fetch"), ("train", "classify")} <= set(LINES)
