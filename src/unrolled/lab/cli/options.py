"""Make command-line options of a settings class: every field is a flag, and its docstring is the help."""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
import typer.core

from unrolled.cli.completed_values import run_folders
from unrolled.errors import FileError, UsageError
from unrolled.named_sources import check_named, check_no_folder, is_hub_dataset
from unrolled.report.formatting import harmless

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = [
    "DataFolder",
    "MultiValueCommand",
    "RunDataFolder",
    "check_files",
    "is_first_process",
    "offer",
    "options",
    "print_notes",
    "run_argument",
    "with_parameters",
]

DataFolder = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the datasets; by default the variable UNROLLED_DATA.")
]

RunDataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the datasets; by default the variable UNROLLED_DATA. The run's own files, if they have moved, "
        "are looked for at their places below the deepest folder that held all of them, then by their names alone.",
    ),
]


def run_argument(help_text: str) -> Any:
    """Declare the argument RUN: a shell offers run folders for it."""
    return typer.Argument(metavar="RUN", help=help_text, autocompletion=run_folders)


def check_files(names: Sequence[str]) -> None:
    """Find a file that is missing before torch is loaded; a name without a suffix may be a dataset's."""
    from unrolled.lab.data.load import is_dataset

    for name in names:
        path = Path(name)
        if is_hub_dataset(name):
            continue
        check_named(name)
        if not is_dataset(name):
            check_no_folder(path)
        if not path.exists() and (path.suffix or len(names) > 1) and not is_dataset(name):
            raise FileError(f"{name}: cannot be read: No such file or directory")


def is_first_process() -> bool:
    """Tell whether this is the first of the processes that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def print_notes(notes: Iterable[str]) -> None:
    """Print what was chosen or left out while files were read, to stderr; under torchrun, in the first process."""
    if is_first_process():
        for note in notes:
            typer.echo(harmless(note), err=True)


class MultiValueCommand(typer.core.TyperCommand):
    """A command whose repeatable options take several values at once: ``--data a.de a.en``.

    A command with an argument does so behind that argument: ``RUN --data a.de a.en``, but ``--data a.csv RUN``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its values, as the parser expects it."""
        arguments = sum(each.param_type_name == "argument" for each in self.params)
        leading = list(takewhile(lambda word: not word.startswith("-"), args))
        if len(leading) < arguments:
            return super().parse_args(ctx, args)
        if len(leading) > arguments:
            word = leading[arguments]
            raise UsageError(f"{word!r} follows no option; a dataset or a file is named by --data: --data {word}")
        repeated = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, list(_spread(args, repeated)))


def _spread(words: Iterable[str], repeated: set[str]) -> Iterator[str]:
    option, given = "", 0  # the repeatable option whose values these are, if any
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            option, given = (name, len(equals)) if name in repeated else ("", 0)
        elif option:
            given += 1
            if given > 1:
                yield option
        yield word


Offers = Callable[[str], list[str]]
"""What a shell offers for a value that is being typed."""


def options(
    settings: type[BaseModel],
    panel: str,
    defaults: Mapping[str, Any],
    offers: Mapping[str, Offers] = MappingProxyType({}),
) -> list[inspect.Parameter]:
    """Make a keyword parameter, and so a flag, of every field of a settings class; None if the flag is not given."""
    return [
        _option(name, field, panel, defaults.get(name), offers.get(name))
        for name, field in settings.model_fields.items()
    ]


def offer(names: Sequence[str]) -> Offers:
    """Offer some names to a shell."""

    def matching(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return matching


def _option(name: str, field: FieldInfo, panel: str, default: Any, offers: Offers | None) -> inspect.Parameter:
    from pydantic_core import PydanticUndefined

    kind = _plain(field.annotation)
    shown = default if default is not None else field.get_default(call_default_factory=True)
    shown = None if shown is PydanticUndefined else shown
    flag = f"--{name.replace('_', '-')}"
    names = [flag]
    if kind is bool:
        names = [f"{flag}/--no-{flag[2:]}"] if shown else [flag]
    elif kind is dict:
        names, kind, shown = ["--option"], list[str], None
    elif kind is tuple:
        kind, shown = list[str], None
    told = field.description or ""
    if get_origin(field.annotation) is Literal:
        told = f"{told.rstrip('.')}: {', '.join(get_args(field.annotation))}."
        offers = offer(get_args(field.annotation))
    option = typer.Option(
        *names,
        help=" ".join(told.replace("``", "").split()),
        show_default=False if kind is bool or shown is None else str(shown),
        rich_help_panel=panel,
        metavar="NAME=VALUE" if name == "options" else None,
        autocompletion=offers,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _plain(annotation: Any) -> Any:
    """Return the type of a flag's value: without None, and str for a choice of words."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _plain(next(each for each in get_args(annotation) if each is not type(None)))
    if get_origin(annotation) is Literal:
        return str
    return get_origin(annotation) or annotation if annotation is not Path else Path


def with_parameters(
    function: Callable[..., None], parameters: Iterable[inspect.Parameter], name: str, help_text: str
) -> Callable[..., None]:
    """Wrap a function in one with the name, parameters and docstring from which typer makes a command."""

    def command(**given: Any) -> None:
        function(**given)

    command.__name__ = name
    command.__doc__ = help_text
    command.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def read_option(text: str) -> tuple[str, bool | int | float | str]:
    """Parse NAME=VALUE; the value is a boolean, a number, or else a word."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"--option is {text!r}; expected NAME=VALUE, such as choices=4")
    if value in ("true", "false"):
        return name, value == "true"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value
