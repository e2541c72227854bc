"""The base class of settings, with errors of one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

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
    later: ClassVar[tuple[str, ...]] = ()
    """Settings that were added later: earlier runs, and trials whose keys are made of their settings, lack them."""

    @model_serializer(mode="wrap")
    def _serialise(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the later settings where they have their defaults."""
        record: dict[str, Any] = serialise(self)
        fields = type(self).model_fields
        return {key: value for key, value in record.items() if key not in self.later or value != fields[key].default}

    @model_validator(mode="before")
    @classmethod
    def _no_boolean_is_a_number(cls, values: Any) -> Any:
        """Refuse true and false where a number is expected: pydantic reads them as 1 and 0."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            if isinstance(value, bool) and field is not None and not _allows(field.annotation, bool):
                raise UsageError(f"{name} is {str(value).lower()}; expected {_expected(field.annotation)}")
        return values

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _one_line(error, type(self).model_fields) from None


def _allows(annotation: Any, kind: type) -> bool:
    """Tell whether a value of exactly this type fits an annotation."""
    return annotation in (kind, Any) or any(_allows(part, kind) for part in get_args(annotation))


def _expected(annotation: Any) -> str:
    """Say what fits an annotation that takes no boolean."""
    if words := [
        word for part in (annotation, *get_args(annotation)) if get_origin(part) is Literal for word in get_args(part)
    ]:
        return f"one of: {', '.join(map(str, words))}"
    if _allows(annotation, int) or _allows(annotation, float):
        return "a number"
    return "the path of a file" if _allows(annotation, Path) else "text, in quotes if it reads as true or false"


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
