"""Make command-line options of a settings class: every field is a flag, and its docstring is the help."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from unrolled.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = ["offer", "options", "read_option", "with_parameters"]

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
