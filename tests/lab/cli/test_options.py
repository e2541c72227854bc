from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import typer
import typer.main
from pydantic import Field

from unrolled.errors import UsageError
from unrolled.lab.cli.multi_value_command import MultiValueCommand
from unrolled.lab.cli.options import options, read_option, with_parameters
from unrolled.lab.settings import Settings


class Choices(Settings):
    hidden: int = Field(128, ge=1)
    """Size of its state."""
    lr: float = 0.001
    """Learning rate."""
    shuffle: bool = True
    """Draw the order."""
    loud: bool = False
    """Say more."""
    kind: Literal["a", "b"] = "a"
    """Which kind."""
    vectors: Path | None = None
    """Where vectors are."""
    files: tuple[str, ...] = ()
    """Which files."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """More of them."""


@pytest.fixture
def call(capsys):
    """Run a command made of these settings; what was given comes back, or the help."""

    def run(*words, defaults=None):
        given = {}

        def keep(**values):
            given.update({key: value for key, value in values.items() if value not in (None, [])})

        app = typer.Typer(add_completion=False)
        command = with_parameters(keep, options(Choices, "Settings", defaults or {}), "go", "Go on.")
        app.command("go", cls=MultiValueCommand)(command)
        typer.main.get_command(app)(list(words), standalone_mode=False)
        return given, capsys.readouterr().out

    return run


def test_only_what_is_given_arrives_and_as_what_it_is(call):
    assert call()[0] == {}
    words = ("--hidden", "3", "--lr", "0.5", "--no-shuffle", "--loud", "--kind", "b", "--vectors", "v.txt")
    expected = {"hidden": 3, "lr": 0.5, "shuffle": False, "loud": True, "kind": "b", "vectors": Path("v.txt")}
    assert call(*words)[0] == expected


def test_an_option_that_may_be_repeated_takes_several_words_at_once(call):
    assert call("--files", "a.de", "a.en", "--hidden", "3")[0] == {"files": ["a.de", "a.en"], "hidden": 3}
    assert call("--files", "a", "--files", "b", "c")[0] == {"files": ["a", "b", "c"]}
    assert call("--files=a.de", "a.en", "--hidden", "3")[0] == {"files": ["a.de", "a.en"], "hidden": 3}
    assert call("--option", "choices=8", "x=y")[0] == {"options": ["choices=8", "x=y"]}


def test_one_that_may_not_takes_one(call):
    with pytest.raises(typer.TyperException):
        call("--hidden", "3", "4")
    with pytest.raises(typer.TyperException):
        call("--hidden=3", "4")


def test_the_help_says_what_the_settings_docstrings_say(call):
    _, text = call("--help", defaults={"hidden": 64})
    text = " ".join(text.replace("│", " ").split())
    for words in (
        "Size of its state.",
        "[default: (64)]",
        "--no-shuffle",
        "Which kind: a, b.",
        "NAME=VALUE",
        "Settings",
    ):
        assert words in text, text
    assert "--no-loud" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", ("a", 1)),
        ("a=0.5", ("a", 0.5)),
        ("a=true", ("a", True)),
        ("a=tanh", ("a", "tanh")),
        ("a=b=c", ("a", "b=c")),
    ],
)
def test_a_value_is_what_it_looks_like(text, expected):
    found = read_option(text)
    assert found == expected
    assert type(found[1]) is type(expected[1])


@pytest.mark.parametrize("text", ["a", "a=", "=1", ""])
def test_half_an_option_is_refused(text):
    with pytest.raises(UsageError, match="expected NAME=VALUE, such as choices=4"):
        read_option(text)
