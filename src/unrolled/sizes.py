"""Check a size that a user gives: any whole number, numpy's included, but not True."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast

from unrolled.errors import UsageError

__all__ = ["checked_size"]


def checked_size(label: str, value: object, least: int = 1) -> int:
    """Return a size as an int.

    Args:
        label: Name of the size in the error message.
        value: Any whole number. True and False are refused: they belong to a flag.
        least: Smallest allowed value, 1 or 0.

    Raises:
        UsageError: If the value is not a whole number, or too small.
    """
    try:
        size = -1 if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        size = -1
    if size < least:
        raise UsageError(f"{label} is {value!r}; expected {'0 or ' if least == 0 else ''}a positive integer")
    return size
