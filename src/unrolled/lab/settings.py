"""The base class of settings, with errors of one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from unrolled.errors import UnknownNameError, UsageError

__all__ = ["Settings"]

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "names and values",
    "path_type": "the path of a file",
    "string_type": "text",
    "too_short": "at least one",
    "tuple_type": "a list",
}
"""Plain words for pydantic's error types."""
_KINDS = ("bool", "int", "float", "str")
"""The last part of an error's location, if a value may have several types and has none of them."""


class Settings(BaseModel):
    """Immutable settings that are checked when they are created.

    Raises:
        UsageError: If a key is unknown or missing, or a value is wrong; an unknown name comes with the nearest one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _one_line(error, type(self).model_fields) from None


def _one_line(error: ValidationError, known: Iterable[str]) -> UsageError:
    """Describe the first mistake in one line."""
    first = error.errors(include_url=False)[0]
    place, found = first["loc"], first["input"]
    expected = _EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
    if len(place) > 1 and place[-1] in _KINDS:
        place, expected = place[:-1], "true, false, a number or text"
    key = ".".join(str(part) for part in place)
    match first["type"]:
        case "extra_forbidden":
            return UnknownNameError("setting", key, known)
        case "missing":
            return UsageError(f"the setting {key!r} is missing")
        case "literal_error":
            return UnknownNameError(key, str(found), re.findall(r"'([^']*)'", first["ctx"]["expected"]))
        case "value_error" if isinstance(first["ctx"]["error"], UsageError):  # raised by a validator of ours
            return first["ctx"]["error"]
    return UsageError(f"{key} is {found!r}; expected {expected}")
